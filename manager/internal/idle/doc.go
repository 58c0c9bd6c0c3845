// Package idle finds out when a manager has nothing left to do, for Manager.RunUntilIdle.
//
//	write ─▶ cache ─▶ event handlers ─▶ queue ─▶ reconcile ─▶ write …
//
// Work moves around this cycle, and watcher.go polls every station. The writes include those to the clusters of a
// fleet; package writes counts them until the caches show them.
package idle
