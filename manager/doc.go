// Package manager runs controllers in a process. It starts the caches, clients and servers that they need, reports
// their health, elects a leader, and stops them in an order that lets work in flight finish.
//
// # Start
//
//	health, metrics and webhooks answer ─▶ API server answers ─▶ informers, events ─▶ runnables that need no leader
//	                                                                     └▶ caches warm ─▶ lease acquired ─▶ others
//
// # Stop
//
// Stopping has two phases. It begins when the context of [Manager.Run] ends, the stop. The deadline for work in flight
// comes Options.GracefulTimeout later; until then, reconcilers can use caches, clients and the lease:
//
//	stop ─▶ intake ends: no reconcile starts any more; the contexts of all Runs end
//	     ─▶ reconciles in flight continue
//	deadline ─▶ their contexts are cancelled; the keys of those that still do not return are reported
//	     ─▶ queued events are sent
//	     ─▶ the lease is released, unless guarded work still runs
//	     ─▶ webhooks answer the requests in flight, and take no more
//	     ─▶ informers end
//	     ─▶ health and metrics end
//	     ─▶ Run returns; an [UndoneError] lists what was left undone
//
// A lost lease or a failing runnable stops the manager in the same way. When the lease is lost, the work that it guards
// is cancelled at once, before another process can take over; see package leader. With LeaderElection.Survive the
// manager does not stop. If the guarded work returns in time, the manager becomes a follower again, with warm caches.
// It rebuilds the runnables that need leadership, so that they can run when it leads the next time.
//
// A runnable can be added while the manager runs. [Manager.Remove] stops a single runnable in the same way and removes
// it; its name can then be used again.
//
// # Runnables
//
// A [Runnable] needs only the method Run. The manager also uses these methods if the runnable has them:
//
//   - Name() string: its name in logs and errors.
//   - NeedLeaderElection() bool: whether it waits for the lease. A runnable without this method waits.
//   - Health() error: shown on /readyz.
//   - Note() string: shown on /readyz when nothing is missing.
//   - Stats() reconcile.Stats: reported in the metrics.
//   - InFlight() []string: its work in flight, for the error when work is cancelled.
//   - Release(): called after the runnable was removed.
//
// A controller of package reconcile has most of them; package builder makes controllers with all of them. The context
// passed to Run ends at the stop; a controller derives from it the context that ends at the deadline.
//
// # Until idle
//
// [Manager.RunUntilIdle] is for a process that ends by itself, such as a command that applies objects, runs the
// controllers until they have nothing left to do, and reports what they did. [Manager.Trigger] adds requests to those
// that events cause.
//
// # Health
//
// /livez and /healthz describe this process alone. An unreachable API server does not make them fail, because a restart
// would not help. /readyz describes in words what is missing. A follower with warm caches is ready, and shows which
// process leads.
//
// # Concurrency
//
// All state belongs to a [Manager], so several can run in one process. Its methods may be called from any goroutine.
package manager
