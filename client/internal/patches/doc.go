// Package patches computes the bodies of patches.
//
// Reading order: difference.go, the JSON merge patch (RFC 7386) between two states of an object; typed.go, the same
// between two Go values, which encodes only what differs; apply.go, an object after a patch.
package patches
