// Package live sends requests to an API server and decodes its answers. No other package of the client sends requests,
// so another HTTP client could replace client-go's here, without a change in the packages above.
//
// Reading order: server.go, the connection; request.go, a request from its path to its answer; read.go, Get and List;
// mapper.go, the resource of a kind, by discovery.
package live
