// Package deployed tries deploy/ on the real API server: the manifests as they are, the binary with the token of
// their service account and the command line of their Deployment.
package deployed
