// Package fleet is several clusters in one process: a hub, on which the process holds its lease and most objects live, and build
// clusters. Each has a manager of its own, with caches and a client; those of the build clusters run in the hub's, so they begin
// when the lease is won and end before it is given away.
//
//	lease ─▶ hub's manager ─┬─▶ the hub's controllers
//	                        ├─▶ manager of build01 ─▶ its caches and controllers
//	                        └─▶ manager of build02 ─▶ …
package fleet
