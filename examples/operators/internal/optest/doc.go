// Package optest is the harness that the tests of the operators share. It plays scenarios as a service account with the
// permissions in the manifests (scenarios.go), in a world with the usual helpers that records writes, where it tells
// the stories that make run prints (world.go). It kills the operator in a process of its own, and runs clusters of
// "flyball serve" beside it (process.go).
package optest
