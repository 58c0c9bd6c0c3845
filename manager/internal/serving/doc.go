// Package serving is the manager's HTTP server: its listeners, its certificates, and the reviews that keep strangers out.
//
// Read server.go first. certificates.go makes or reads the certificate of TLS. review.go asks the API server who may read.
// debug.go serves profiles and the configuration.
package serving
