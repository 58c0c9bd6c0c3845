// Package live sends requests to an API server and decodes its answers. It is the only package of the client that sends
// requests: a client of another kind below it, in the place of client-go's, changes nothing above it.
//
// Reading order: server.go, the connection; request.go, a request from its path to its answer; read.go, Get and List;
// mapper.go, the resource of a kind, by discovery.
package live
