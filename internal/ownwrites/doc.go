// Package ownwrites records the writes of this process to a server that its caches may not show yet.
//
//	client, clientset, dynamic client ─▶ transport ─▶ API server
//	                                         │ before: a Write in doubt; after: its Entry
//	                                         ▼
//	                                      Record ─ by resource ─▶ Resource
//	                                         ▲
//	cached reads, gates, RunUntilIdle, missed states ask it
//
// A write in doubt is a request whose effect is unknown: it is under way, its answer was lost, or the answer does not
// say what became of the object. A minimum version is a version that a cache has to reach before it can be read, where
// no entry can be laid over the cache.
//
// Reading order: record.go; context.go, what the context of a request carries; transport.go, how writes are noted;
// write.go, a write until its effect is known; entry.go, the effect; resource.go, both, until the caches show them;
// missed.go, callers of states that no cache showed; resolve.go, asking the server; awaited.go, waiting until the
// caches show all writes. Package awaited does the same for the records of several servers.
//
// Two packages can be read last: wire reads requests and answers, and internal/versions compares resource versions.
package ownwrites
