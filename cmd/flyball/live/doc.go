// Package live shows a running manager in a terminal: it reads the address at which package inspect serves.
//
// Reading order: trace.go, the client and flyball trace; screen.go and top.go for flyball top.
package live
