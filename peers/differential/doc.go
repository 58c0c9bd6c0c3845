// Package differential runs Flyball's controllers against the real API server, and will compare what they do
// with what kube-controller-manager does. It holds only tests.
package differential
