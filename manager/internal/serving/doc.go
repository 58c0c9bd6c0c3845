// Package serving is the manager's HTTP server: its listeners, its certificates, and the reviews that authorize its
// readers.
//
// Read server.go first. certificates.go makes or loads the TLS certificate. review.go asks the API server who may read.
package serving
