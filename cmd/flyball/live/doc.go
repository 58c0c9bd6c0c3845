// Package live shows a running manager in a terminal: it reads the address at which package inspect serves.
//
// Reading order: client.go, trace.go for flyball trace; pipeline.go, model.go and top.go for flyball top.
package live
