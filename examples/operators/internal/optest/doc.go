// Package optest holds what the tests of the operators share. It plays scenarios as a service account with the
// permissions in the manifests (scenarios.go), records writes (writes.go), kills the operator in a process of its own
// (process.go, rounds.go), and runs its story (story.go).
package optest
