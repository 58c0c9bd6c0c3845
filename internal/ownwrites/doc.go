// Package ownwrites is the record of what this process wrote to a server and its caches may not show yet.
//
//	client, clientset, dynamic client ─▶ transport ─▶ API server
//	                                         │ before: a Write in doubt; after: its Entry
//	                                         ▼
//	                                      Record ─ by resource ─▶ Resource
//	                                         ▲
//	cached reads, gates, RunUntilIdle, missed states ask it
//
// A write in doubt is a request of which nobody knows whether it took effect: it is under way, its answer was lost, or
// the answer does not say what became of the object. A minimum version is what a cache has to reach before it can be
// read, where there is no entry to lay over it.
//
// Reading order: record.go; context.go, what the context of a request says; transport.go, how writes come in;
// write.go, a write until its effect is known; entry.go, the effect; resource.go, both, until the caches show them;
// missed.go, who is told of a state that no cache showed; resolve.go, asking the server; idle.go, waiting until all is
// shown.
//
// Two rooms are for later: package wire reads requests and answers, package versions compares resource versions.
package ownwrites
