// Package idle finds out when a manager has nothing left to do, for Manager.RunUntilIdle.
//
//	write ─▶ cache ─▶ event handlers ─▶ queue ─▶ reconcile ─▶ write …
//
// Work moves around this cycle. watcher.go polls all of its stations, and writes.go counts the writes to all servers,
// those to the clusters of a fleet included, until the caches show them.
package idle
