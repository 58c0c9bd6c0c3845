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
// Reading order: record.go; transport.go, how writes come in; answers.go, what an answer says; write.go, a write until
// its effect is known; entry.go, the effect; resource.go, both, until the caches show them; minimum.go and version.go;
// missed.go, who is told of a state that no cache showed; selects.go; owner.go; resolve.go, asking the server; idle.go,
// waiting until all is shown.
package ownwrites
