// Package loop measures what a controller costs as its author runs it: from the watch event to the write. Each system
// is a program in a process of its own, and all of them work against one API server in another process. The command in
// cmd/loop runs the programs in turns and prints medians.
//
// Reading order: systems.go, what a program provides; cmd/ours, theirs and cmd/parts, the controllers that are
// compared; work.go, what each of them has to do; program.go and process.go, how a program measures itself; report.go,
// the tables. The programs are also an operator, operator.go, which package cluster measures.
package loop
