// Package jsonpatch applies JSON patches (RFC 6902) and JSON merge patches (RFC 7386) of clients and webhooks.
//
// Its answers are those of the library that kube-apiserver uses, and so are its errors. But the library bounds copies
// by a variable of the whole process, and parses a nested value again at every level and after every copy. Here a
// document is parsed once, and the time and the memory of a patch have bounds. And a test compares strings, where the
// library compares how they are escaped.
package jsonpatch
