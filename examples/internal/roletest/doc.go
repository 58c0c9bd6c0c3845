// Package roletest compares the role of an example, which controller-gen writes from markers, with what the tests of
// the example ask the API server for.
package roletest
