// Package fleet runs several clusters in one process: a hub, which has the process's lease and most objects, and build
// clusters. Each has a manager of its own, with caches and a client. The managers of the build clusters run inside the
// hub's manager, so they begin when the lease is won and end before it is released.
//
//	lease ─▶ hub's manager ─┬─▶ the hub's controllers
//	                        ├─▶ manager of build01 ─▶ its caches and controllers
//	                        └─▶ manager of build02 ─▶ …
package fleet
