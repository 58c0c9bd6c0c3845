// Package functions compares functions of Flyball's controllers with exported ones of kube-controller-manager, on
// inputs generated from a seed. It holds only tests.
//
// Each is a fuzz test whose corpus is the first seeds: go test runs those, go test -fuzz continues.
package functions
