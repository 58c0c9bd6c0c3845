// Package leader elects one of several processes by a Lease object, and stops the elected process before another one
// may lead. The time during which a process leads is its tenure.
//
// # Promises
//
// A candidate takes over the lease only after it has seen the lease unchanged for the whole lease duration. It measures
// that time on its own monotonic clock, from the moment when it saw the lease, so wall clocks of different processes
// are never compared. A leader counts from the moment when it sent its last successful renewal, which is before any
// candidate can have seen it:
//
//	leader     renew sent ├───────── RenewDeadline 10 s ────────┤ tenure ends
//	candidate      renewal seen ├──────────────── LeaseDuration 15 s ───────────────┤ may take over
//
// If all clocks run at the same rate, a tenure ends at least LeaseDuration - RenewDeadline before the next one begins.
// Tenures do not overlap as long as no clock runs faster than another by the factor LeaseDuration / RenewDeadline (1.5
// by default). The margin is for requests in flight, because no client can recall a packet. The tenure is ended by its
// own timer, even while a renewal hangs.
//
// A person may delete the lease, empty it, shorten it, or write another name into it. The holder notices at its next
// renewal. Until then, and for LeaseDuration after it saw the change, a candidate leaves the lease alone.
//
// The lease is released only after the work that it guards has returned. So the next leader can begin at once, and
// never runs beside the last one.
//
// # Exceptions
//
// A candidate that has never seen the lease creates a missing lease at once. If the lease was deleted just before, its
// holder still leads for up to RetryPeriod.
//
// A process that was stopped (SIGSTOP), or whose machine was suspended, runs its timers late when it resumes. To make
// sure that no write begins after the lease could be lost even then, call [Elector.Check] immediately before each
// write, as [Fence] does. Check reads two clocks, because the monotonic clock stops while a machine is suspended. It is
// wrong only if the wall clock is also set back in that time.
//
// Source: client-go v0.37.2 tools/leaderelection, for the meaning of the record and the durations.
package leader
