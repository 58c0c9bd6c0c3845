// Package lean decodes objects of the Kubernetes API into little memory.
//
// Most of what a cache holds exists many times: the pods of one Deployment have the same labels, the same environment,
// the same probes. The standard decoders copy these for every pod. This decoder keeps one copy:
//
//	bytes of an object ─▶ field by field ─▶ managedFields ─▶ left out
//	                                        string ─────────▶ [words]: the one of the same letters
//	                                        message, list, map ─▶ [table] of parts: decoded before? ─▶ that one
//	                                                                                    └─ no ─▶ field by field
//
// The decoder looks up a part by its bytes before it decodes it, so a shared part costs no decoding either. Parts are
// equal only if their bytes are; a hash alone never decides.
//
// Because objects share parts, whoever modifies one cached object modifies others. An object that its caller is going
// to modify is decoded without sharing.
//
// There is no generated code. For protobuf the decoder makes a [plan] of each Go type, once, from the struct tags that
// the generated decoders come from: which struct field belongs to a number, and how to decode it. It writes the fields
// through unsafe pointers, which only plan.go and protobuf.go compute. For JSON it builds maps. The decoder understands
// only the encoding that Kubernetes produces. It rejects anything unusual, correct or not, and the caller then uses the
// standard decoder. So the two can be compared on any input, which the fuzz tests do.
package lean
