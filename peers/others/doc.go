// Package others runs the test suites of other people's operators on the embedded API and on kube-apiserver, as they
// are, and with our cache, client and queue in controller-runtime.
//
// The sources come from the module proxy at pinned versions, into a folder beside Go's build cache; none of them is
// in this repository. A suite is built once, and is led to a server by what envtest itself offers:
// USE_EXISTING_CLUSTER and KUBECONFIG. So the program that runs on both servers is the same.
//
// operators_test.go lists the operators with the specs that are known to fail, and why; a spec that fails and is not
// listed fails the test, and so does one that is listed and passes. sources_test.go gets and builds them,
// swap_test.go puts our parts into the copy of controller-runtime that they are built with, sides_test.go has the
// servers, suite_test.go runs a suite and reads its report, table_test.go prints what came out.
//
// It takes most of an hour and is only run when asked for: make test-operators.
package others
