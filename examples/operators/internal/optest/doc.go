// Package optest is what the tests of the operators have in common: they play scenarios as a service account that may do what the manifests
// grant (scenarios.go), hold manifests to what a careful administrator asks for (manifests.go), watch what is written (writes.go), kill the
// operator as a process of its own (process.go, rounds.go), and have its story told (story.go).
package optest
