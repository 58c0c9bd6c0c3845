// Package fleet runs controllers for several clusters in one process: the hub, which holds the process's lease and most
// objects, and build clusters. Each cluster has a manager of its own, with caches and a client. The managers of the
// build clusters run inside the hub's manager, so they start when the lease is won and stop before it is released.
//
//	lease ─▶ hub's manager ─┬─▶ the hub's controllers
//	                        ├─▶ manager of build01 ─▶ its caches and controllers
//	                        └─▶ manager of build02 ─▶ …
package fleet
