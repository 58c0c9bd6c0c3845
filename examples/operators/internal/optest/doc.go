// Package optest is the harness that the tests of the operators share. It plays scenarios as a service account with the
// permissions in the manifests (scenarios.go), in a world with the usual helpers (world.go) that records writes
// (writes.go). It kills the operator in a process of its own (process.go), runs clusters of "flyball serve" beside it
// (served.go), and tells the stories that make run prints (story.go).
package optest
