// Package leader is task 12a: one of several processes leads, and another takes over when it fails.
//
// All processes run an Elector on the same lease. The rules are:
//
//   - A lease without a holder may be taken at once.
//   - A lease with another holder may be taken when it has not changed for LeaseDuration, as this process has seen it
//     by its own clock. A lease that was old when the process began looks new to it.
//   - The holder writes the lease every RetryPeriod, so that it changes. It leads until RenewDeadline has passed since
//     it sent the last write that was accepted, even if a request hangs.
//   - The holder gives the lease back when its work has returned, and not before.
//
// Begin with mayTake. Then write campaign, then serve. The server, and how it answers, is in server.go.
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

// ErrLost is the cause with which the context of the work ends when the lease could be lost.
var ErrLost = errors.New("the lease may be lost")

// An Elector makes its process lead at times. Run is called once.
type Elector struct {
	name   string
	server *Server

	// seen is the lease as this process saw it last, and since when it has seen it so.
	seen  Lease
	since time.Time
}

// New returns an elector of a process.
func New(name string, server *Server) *Elector { return &Elector{name: name, server: server} }

// Run waits until this process leads, calls work, and gives the lease back when work has returned. The context of work
// ends with the cause ErrLost when the lease could be lost. It does not end with ctx: work looks at ctx itself, and may
// take its time. Run returns nil when ctx ended before, or the lease was given back, and ErrLost if it was lost.
func (e *Elector) Run(ctx context.Context, work func(tenure context.Context)) error {
	held, sent, ok := e.campaign(ctx)
	if !ok {
		return nil
	}
	return e.serve(ctx, held, sent, work)
}

// look notes what the lease is now. Call it with each lease that was read.
func (e *Elector) look(now Lease) {
	if e.since.IsZero() || now != e.seen {
		e.seen, e.since = now, time.Now()
	}
}

// mayTake reports whether this process may take the lease that it has seen last.
func (e *Elector) mayTake() bool {
	panic("not written yet: mayTake")
}

// campaign reads the lease every RetryPeriod, the first time at once, and takes it when it may. It returns the lease as
// it was stored, and when the write was sent. It returns false when ctx ends.
func (e *Elector) campaign(ctx context.Context) (held Lease, sent time.Time, ok bool) {
	panic("not written yet: campaign")
}

// serve runs work in a goroutine of its own, and renews the lease until work returns. When RenewDeadline has passed
// since the last accepted write was sent, it ends the context of work with the cause ErrLost, and waits for work. If it
// still leads when work returns, it gives the lease back. ctx is only for its values.
func (e *Elector) serve(ctx context.Context, held Lease, sent time.Time, work func(tenure context.Context)) error {
	panic("not written yet: serve")
}
