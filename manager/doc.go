// Package manager runs controllers in a process. It starts what they need, reports their health, elects a leader, and
// stops everything in an order that cuts off no work.
//
// # Start
//
//	health, metrics and webhooks answer ─▶ API server answers ─▶ informers, events ─▶ runnables that need no leader
//	                                                                     └▶ caches warm ─▶ lease acquired ─▶ others
//
// # Stop
//
// Stopping has two phases. The stop is when the context of [Manager.Run] ends; the drain deadline comes
// Options.GracefulTimeout later. What a reconciler uses stays usable until the deadline:
//
//	stop ─▶ intake ends: no key is started any more; the contexts of all Runs end
//	     ─▶ reconciles in flight go on: caches, clients and the lease still work
//	deadline ─▶ their contexts are cancelled; those that still do not return are named
//	     ─▶ queued events are sent
//	     ─▶ the lease is released, unless guarded work still runs
//	     ─▶ webhooks answer the requests in flight, and take no more
//	     ─▶ informers end
//	     ─▶ health and metrics end
//	     ─▶ Run returns; an [UndoneError] lists what was left undone
//
// A lost lease or a failing runnable stops the manager in the same way. When the lease is lost, the work that it guards
// is cancelled at once, before another process can take over; see package leader. With LeaderElection.Survive the
// manager goes on instead. Once all guarded work has returned, if it returns in time, the manager is a follower again
// with warm caches, and rebuilds what needs leadership for its next tenure.
//
// A runnable can be added while the manager runs. [Manager.Remove] stops a single runnable in the same way and removes
// it; its name can then be used again.
//
// # Runnables
//
// A [Runnable] needs only the method Run. The manager also uses these methods if the runnable has them:
//
//   - Name() string: its name in logs and errors.
//   - NeedLeaderElection() bool: whether it waits for the lease. Without the method it does.
//   - Health() error: shown on /readyz.
//   - Note() string: shown on /readyz when nothing is missing.
//   - Stats() reconcile.Stats: reported in the metrics.
//   - InFlight() []string: the work to name when it was cut short.
//   - Release(): called after the runnable was removed.
//
// A controller of package reconcile has most of them; package builder makes controllers with all of them. The context
// passed to Run ends at the stop; a controller derives from it the context that ends at the deadline.
//
// # Until idle
//
// [Manager.RunUntilIdle] does all this in a process that ends by itself: a command that applies objects, runs the
// controllers until they have nothing left to do, and reports what they did. [Manager.Trigger] adds requests to those
// that events cause.
//
// # Health
//
// /livez and /healthz describe this process alone: an unreachable API server does not turn them red, because a restart
// would not bring it back. /readyz says in words what is missing. A follower with warm caches is ready, and says who
// leads.
//
// # Concurrency
//
// All state belongs to a [Manager], so several can run in one process. Its methods may be called from any goroutine.
package manager
