// Package leader is task 12a: one of several processes leads, and another takes over when it fails.
//
// All processes run an Elector on the same lease. The rules are:
//
//   - A lease without a holder may be taken at once.
//   - A lease with another holder may be taken when this process has seen it unchanged for LeaseDuration, by its own
//     clock. So the process does not trust the age of a lease that it sees for the first time.
//   - The holder writes the lease every RetryPeriod, so that it changes. It leads until RenewDeadline has passed since
//     it sent the last write that was accepted, even if a request hangs.
//   - The holder gives the lease back when its work has returned, and not before.
//
// Begin with mayTake. Then write campaign, and then serve. File server.go has the server.
package leader

import (
	"context"
	"errors"
	"time"
)

// The durations are those of Kubernetes.
const (
	LeaseDuration = 15 * time.Second
	RenewDeadline = 10 * time.Second
	RetryPeriod   = 2 * time.Second
)

// ErrLost is the cause of the work's context when another process may have taken the lease.
var ErrLost = errors.New("the lease may be lost")

// Leases is the server of the lease. Only the end of its context ends a request that hangs.
type Leases interface {
	// Get returns the lease. A lease that was never written is the zero value.
	Get(ctx context.Context, process string) (Lease, error)
	// Put writes the holder if the lease still has the version of l. It returns the stored lease.
	//
	// Errors: kube.ErrConflict if the lease was written since it was read; that of ctx if the server does not answer.
	Put(ctx context.Context, process string, l Lease) (Lease, error)
}

// An Elector makes its process the leader when the lease allows it. Run is called once.
type Elector struct {
	name   string
	server Leases

	// seen is the lease as this process saw it last, and since is when it first saw the lease in this state.
	seen  Lease
	since time.Time
}

// New returns the elector of a process.
func New(name string, server Leases) *Elector { return &Elector{name: name, server: server} }

// Run waits until this process leads, calls work, and gives the lease back when work has returned. If the lease may be
// lost, the context of work ends with the cause ErrLost. It does not end with ctx: work watches ctx itself, and may
// take its time. Run returns ErrLost if the lease was lost. It returns nil if the lease was given back, or if ctx was
// done before the process led.
func (e *Elector) Run(ctx context.Context, work func(tenure context.Context)) error {
	held, sent, ok := e.campaign(ctx)
	if !ok {
		return nil
	}
	return e.serve(ctx, held, sent, work)
}

// look records the state of the lease. Call it with each lease that was read.
func (e *Elector) look(now Lease) {
	if e.since.IsZero() || now != e.seen {
		e.seen, e.since = now, time.Now()
	}
}

// mayTake reports whether this process may take the lease, as it has seen it last.
func (e *Elector) mayTake() bool {
	panic("not written yet: mayTake")
}

// campaign reads the lease every RetryPeriod, beginning at once, and takes it when it may. It returns the stored lease
// and the time when the write was sent. It returns false when ctx is done.
func (e *Elector) campaign(ctx context.Context) (held Lease, sent time.Time, ok bool) {
	panic("not written yet: campaign")
}

// serve runs work in a goroutine of its own, and renews the lease until work returns. If RenewDeadline has passed since
// the last accepted write was sent, serve ends the context of work with the cause ErrLost, and waits for work. If the
// process still leads when work returns, serve gives the lease back. It uses only the values of ctx.
func (e *Elector) serve(ctx context.Context, held Lease, sent time.Time, work func(tenure context.Context)) error {
	panic("not written yet: serve")
}
