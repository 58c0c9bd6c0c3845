// Package live sends requests to an API server and decodes its answers. No other package of the client sends requests.
//
// Reading order: server.go, the connection; request.go, a request and its path; send.go, a request from the caller to
// the transport, and its answer on the way back; read.go, Get and List.
package live
