// Package lean decodes objects of the Kubernetes API into little memory.
//
// Most of what a cache holds is there many times: the pods of one Deployment have the same labels, the same
// environment, the same probes. The standard decoders make a copy of each for every pod. This one makes one:
//
//	bytes of an object ─▶ field by field ─▶ managedFields ─▶ left out
//	                                        string ─────────▶ [words]: the one of the same letters
//	                                        message, list, map ─▶ [table] of parts: decoded before? ─▶ that one
//	                                                                                    └─ no ─▶ field by field
//
// What the bytes of a part are is looked up before they are decoded, so that what is shared costs no decoding either.
// Whether parts are equal is decided by comparing bytes, never by a hash alone.
//
// Shared parts make objects of a cache read-only in earnest: who changes one changes others. An object for somebody
// who is going to change it is decoded without.
//
// There is no generated code. For protobuf the decoder makes a [plan] of each Go type, once, from the struct tags that
// the generated decoders are made from: which field of the struct a number stands for, and how it is decoded. It
// writes the fields through unsafe pointers; plan.go and protobuf.go are the only files that compute any. For JSON it
// builds maps. The decoder knows how Kubernetes writes, and nothing else: what is written in any other way, correct or
// not, is refused, and the caller has the standard decoder deal with it. So it can be compared with that decoder on
// any input, which the fuzz tests do.
package lean
