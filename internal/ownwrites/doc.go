// Package ownwrites notes what a process wrote and its caches may not show yet, for who waits until there is nothing more to do.
//
//	RunUntilIdle ── Books ─▶ context of Run ─▶ a fleet adds a Log for each of its clusters
//	                  │
//	                  └─ Behind? ─▶ Log: what was written to one server, by its transports ─▶ do the caches show it?
//
// Nothing is noted by a log that is in no books.
package ownwrites
