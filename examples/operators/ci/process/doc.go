// Package process is the program: it parses the flags, reads the clusters from a kubeconfig, runs the requested
// controllers, and decides when to exit.
//
// By default it is a dry run: without --dry-run=false it does everything except write. It reports all errors in the
// flags at once. When the kubeconfig changes, the program releases its lease and exits without an error, and its
// supervisor restarts it.
//
// Source: cmd/dptp-controller-manager of openshift/ci-tools.
package process
