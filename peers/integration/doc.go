// Package integration runs Kubernetes' own integration tests, those of its folder test/integration, with parts of
// Flyball: the tests of controllers with our controllers, on kube-apiserver, and the tests of kube-apiserver with
// localapi in its place.
//
// Nothing of the tests is copied into this repository. They are compiled from the module cache, with edits that an
// overlay holds: each controller's Run first runs ours, until its context is done, and what starts an API server starts
// localapi. An edit that matches nothing any more fails the test.
//
// testdata/exceptions.yaml lists the tests that are expected to fail, each with its reason. It is checked both ways: a
// failure that is not listed fails the test, and so does an exception that passes.
//
// The tests run with FLYBALL_INTEGRATION=1 only (make test-integration). A single folder is
//
//	cd peers && FLYBALL_INTEGRATION=1 go test -count 1 -run 'TestControllers/replicaset$' -v ./integration
package integration
