// Package deployed tests deploy/ on the real API server: the manifests unchanged, and the binary with the token of
// their service account and the command line of their Deployment.
package deployed
