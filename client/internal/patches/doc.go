// Package patches makes the bodies of patches: what is sent to turn one state of an object into another.
//
// Reading order: difference.go, a JSON merge patch (RFC 7386) between two states; typed.go, the same between two Go
// values, without encoding what did not change; patches.go, the patches that package client offers.
package patches
