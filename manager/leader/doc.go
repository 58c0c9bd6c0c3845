// Package leader elects one of several processes by a Lease object, and tells the elected one in time when to stop.
//
// # What is promised
//
// A candidate takes the lease over only when it has seen it unchanged for the whole lease duration, measured on its own
// monotonic clock from the moment it saw it: the wall clocks of the processes are never compared. A leader counts from the
// moment it sent its last successful renewal, which is before any candidate can have seen it:
//
//	leader     renew sent ├───────── RenewDeadline 10 s ────────┤ tenure ends
//	candidate      renewal seen ├──────────────── LeaseDuration 15 s ───────────────┤ may take over
//
// So the tenure of one leader ends at least LeaseDuration - RenewDeadline before the next one's begins, as long as the
// clocks of both run equally fast to within that ratio (a third, by default). That margin is for requests on their way: no
// client can recall a packet. The tenure ends by a timer of its own, also while a renewal hangs.
//
// A person may delete the lease, empty it, shorten it, or write another name into it. The holder learns of it with its next renewal;
// until then, and for LeaseDuration from when it saw what was done, a candidate leaves the lease alone.
//
// The lease is released only after the work that it guards has returned, so that the next leader begins at once and never
// beside the last one.
//
// # What is not
//
// A candidate that has never seen the lease takes one that is missing at once: if it was deleted a moment ago, its holder goes on for
// up to RetryPeriod.
//
// A machine that is suspended may stop its monotonic clock. A process that was stopped (SIGSTOP) and resumes runs its timers
// late: work must ask [Elector.Check] immediately before a write for "no write begins after the lease could be lost" to
// hold there as well.
//
// Source: client-go v0.37.2 tools/leaderelection, for the record's meaning and the times.
package leader
