// Package functions compares functions of Flyball's controllers with those that kube-controller-manager's export, on
// inputs made from a seed. It holds only tests.
//
// Each is a fuzz test whose corpus is the first seeds: go test runs those, go test -fuzz goes on.
package functions
