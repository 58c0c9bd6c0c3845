// Package lean decodes objects of the Kubernetes API into little memory.
//
// Most of what a cache holds exists many times: the pods of one Deployment have the same labels, the same environment,
// the same probes. The standard decoders copy these for every pod. This decoder keeps one copy:
//
//	bytes of an object ─▶ field by field ─▶ managedFields ─▶ left out
//	                                        string ─────────▶ [words]: one copy of equal strings
//	                                        message, list, map ─▶ [table] of parts: decoded before? ─▶ that one
//	                                                                                    └─ no ─▶ field by field
//
// The decoder looks up a part by its bytes before it decodes it, so a shared part costs no decoding either. Parts are
// equal only if their bytes are; a hash alone never decides.
//
// Because objects share parts, code that modifies one cached object modifies others, too. For a caller that is going to
// modify an object, the decoder shares none of its parts.
//
// There is no generated code. For protobuf the decoder makes a [plan] of each Go type, once, from the same struct tags
// as the generated decoders. The plan maps the number of a protobuf field to a struct field, and describes how to
// decode it. The decoder writes the struct fields through unsafe pointers, which only plan.go and protobuf.go compute.
// For JSON it builds maps. The decoder understands only the encoding that Kubernetes produces. It rejects anything
// unusual, correct or not, and the caller then uses the standard decoder. So whatever it accepts, it must decode as the
// standard decoder does. The fuzz tests check that for any input.
package lean
