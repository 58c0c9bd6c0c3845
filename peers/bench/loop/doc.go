// Package loop measures what a controller costs as its author runs it: from the watch event to the write. Each system
// is a program in a process of its own, and all of them work against one API server in another process. The command in
// cmd/loop runs the systems in turns and prints medians.
//
// Reading order: systems.go, the controllers that are compared; work.go, what each of them has to do; process.go, how
// one process measures itself; report.go, the tables.
package loop
