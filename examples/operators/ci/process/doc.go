// Package process is the program: flags, the clusters of a kubeconfig, the controllers that were asked for, and what ends it.
//
// It begins dry: unless told otherwise by --dry-run=false it does everything but change something. All that is wrong with the
// flags is said at once. When the kubeconfig changes, the program gives its lease away and ends without an error, and who started
// it starts it again.
//
// Source: cmd/dptp-controller-manager of openshift/ci-tools.
package process
