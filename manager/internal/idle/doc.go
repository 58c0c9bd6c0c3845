// Package idle finds out when a manager has nothing left to do, for Manager.RunUntilIdle.
//
//	write ─▶ cache ─▶ event handlers ─▶ queue ─▶ reconcile ─▶ write …
//
// Work moves around this cycle. watcher.go polls all of its stations. The writes are those to all servers, the clusters
// of a fleet included; package awaited counts them until the caches show them.
package idle
