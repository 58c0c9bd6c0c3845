// Package suites runs controller-runtime's own test suites, as its module has them, with other servers and with other
// parts than they were written for.
//
// A run is a suite, a server and a set of parts. The servers are localapi and the real kube-apiserver. The parts are
// controller-runtime's own ("theirs": the suite is unmodified) or a set of Flyball's, see package parts. Theirs on
// kube-apiserver is the baseline: a spec that fails there fails for reasons of its own.
//
// Nothing of the suites is copied into this repository. They are compiled from the module cache; where parts are
// swapped, from a copy of it that is made at the time of the test, in which calls of constructors are replaced, or the
// constructors themselves. A replacement that does not match any more fails the test.
//
// testdata/exceptions.yaml lists the specs that are expected to fail, each with its reason. It is checked both ways:
// a failure that is not listed fails the test, and so does an exception that passes.
//
// Without FLYBALL_SUITES=all only the unmodified suites run on localapi, but for slow ones and those that serve at
// :8080. FLYBALL_SUITES_DIR names a folder in which their binaries stay, so that they are not linked again. A single
// run is
//
//	cd peers/suites && FLYBALL_SUITES=all go test -run 'TestSuites/NewManager/localapi/manager$' -v
package suites
