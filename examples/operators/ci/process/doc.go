// Package process is the program: its flags, the clusters of a kubeconfig, the requested controllers, and the reasons
// to exit.
//
// By default it is a dry run: without --dry-run=false it does everything except write. It reports all errors in the
// flags at once. When the kubeconfig changes, the program releases its lease and exits without an error, so that its
// supervisor restarts it.
//
// Source: cmd/dptp-controller-manager of openshift/ci-tools.
package process
