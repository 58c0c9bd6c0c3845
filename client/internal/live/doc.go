// Package live sends requests to an API server, and reads what it answers.
//
// Reading order: server.go, what a client of a server is made of; mapper.go, under which address the objects of a kind
// are; request.go, a request from its address to its answer; read.go, the requests that read; reply.go, the answer to
// a request about one object.
package live
