// Package manager is the process around controllers: it starts what they need, says how they are, elects a leader, and stops
// everything in an order in which nothing is cut off.
//
// # Start
//
//	health and metrics answer ─▶ the API server answers ─▶ informers, event sender ─▶ runnables that need no leader
//	                                                                               └▶ caches warm ─▶ lease acquired ─▶ the others
//
// # Stop
//
// There are two moments. The stop ends the context of [Manager.Run]; the drain deadline comes Options.GracefulTimeout later. What
// a reconciler is given lives until the second:
//
//	stop ─▶ intake ends: no key is started any more; every Run is told
//	     ─▶ reconciles in flight go on: caches, clients and the lease are alive
//	deadline ─▶ their contexts are cancelled; who still does not return is named
//	     ─▶ queued events are sent
//	     ─▶ the lease is released, unless guarded work still runs
//	     ─▶ informers end
//	     ─▶ health and metrics end
//	     ─▶ Run returns; an [UndoneError] lists what was left undone
//
// A lost lease and a runnable that fails stop the manager in the same way. When the lease is lost, the work that it guards
// is cancelled at once, before another process can take over; see package leader. With LeaderElection.Survive the manager
// goes on instead: when all guarded work has returned in time it is a follower again, its caches still warm, and builds what
// needs leadership anew for its next tenure.
//
// A runnable can be added while the manager runs, and taken away by [Manager.Remove], which stops it as above, alone; one of
// the same name may then take its place.
//
// # Runnables
//
// A [Runnable] has only Run. What else it has is used: Name() string in logs and errors, Health() error on /readyz, Note() string
// there when nothing is missing, NeedLeaderElection() bool (without it: true), Stats() reconcile.Stats in metrics, InFlight()
// []string where work is named that was cut short, Release() when it was removed. A controller of package reconcile has most of
// them; package builder makes one with all. The context given to Run ends at the stop; a controller takes from it the one that
// ends at the deadline.
//
// # Until idle
//
// [Manager.RunUntilIdle] runs all this in a process that is to end by itself: a command that applies something, has the controllers
// do what follows from it, and tells what they did. [Manager.Trigger] asks for more than what the events ask for.
//
// # Health
//
// /livez and /healthz are about this process alone: an API server that is away does not turn them red, for a restart would
// not bring it back. /readyz says in words what is missing. A follower with warm caches is ready: it says who leads.
//
// # Concurrency
//
// There is no state outside a [Manager]: several may live in one process. Its methods may be called from any goroutine.
package manager
