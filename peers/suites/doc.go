// Package suites runs controller-runtime's own test suites, as its module has them, with other servers and with other parts than they
// were written for.
//
// A run is a suite, a server and a set of parts. The servers are localapi and the real kube-apiserver. The parts are
// controller-runtime's own ("theirs": the suite is unmodified) or a set of Flyball's, see package parts. Theirs on kube-apiserver is
// the baseline: a spec that fails there fails for reasons of its own.
//
// Nothing of the suites is copied into this repository. They are compiled from the module cache; where parts are swapped, go test
// -overlay puts a changed copy of a file in the place of the original, made at the time of the test by replacing the call of a
// constructor. A replacement that does not match any more fails the test.
//
// testdata/exceptions.yaml lists the specs that are expected to fail, each with its reason. It is checked both ways: a failure that
// is not listed fails the test, and so does an exception that passes.
//
// FLYBALL_SUITES_DIR names a folder in which the suites' binaries stay, so that they are not linked again. Without FLYBALL_SUITES=all only the unmodified suites run, but for the two slow ones, on localapi. A single run is
//
//	FLYBALL_SUITES=all go test ./suites -run 'TestSuites/NewManager/localapi/manager$' -v
package suites
