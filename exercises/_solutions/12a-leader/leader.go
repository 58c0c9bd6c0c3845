// Package leader is the solution of task 12a.
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
	return e.seen.Holder == "" || time.Since(e.since) >= LeaseDuration
}

// campaign reads the lease every RetryPeriod, the first time at once, and takes it when it may. It returns the lease as
// it was stored, and when the write was sent. It returns false when ctx ends.
func (e *Elector) campaign(ctx context.Context) (held Lease, sent time.Time, ok bool) {
	next := time.NewTicker(RetryPeriod)
	defer next.Stop()
	for {
		if held, sent, err := e.try(ctx); err == nil {
			return held, sent, true
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return Lease{}, time.Time{}, false
		}
	}
}

var errHeld = errors.New("the lease is held")

// try reads the lease once, and takes it if it may.
func (e *Elector) try(ctx context.Context) (Lease, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, RenewDeadline/2)
	defer cancel()
	now, err := e.server.Get(ctx, e.name)
	if err != nil {
		return Lease{}, time.Time{}, err
	}
	if e.look(now); !e.mayTake() {
		return Lease{}, time.Time{}, errHeld
	}
	sent := time.Now()
	held, err := e.server.Put(ctx, e.name, Lease{Holder: e.name, Version: now.Version})
	return held, sent, err
}

// serve runs work in a goroutine of its own, and renews the lease until work returns. When RenewDeadline has passed
// since the last accepted write was sent, it ends the context of work with the cause ErrLost, and waits for work. If it
// still leads when work returns, it gives the lease back. ctx is only for its values.
func (e *Elector) serve(ctx context.Context, held Lease, sent time.Time, work func(tenure context.Context)) error {
	tenure, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lose(nil)
	alarm := time.AfterFunc(time.Until(sent.Add(RenewDeadline)), func() { lose(ErrLost) })
	defer alarm.Stop()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		work(tenure)
	}()
	next := time.NewTicker(RetryPeriod)
	defer next.Stop()
	for {
		select {
		case <-returned:
			if tenure.Err() != nil {
				return ErrLost
			}
			_, err := e.server.Put(tenure, e.name, Lease{Version: held.Version})
			return err
		case <-tenure.Done():
			<-returned
			return ErrLost
		case <-next.C:
		}
		sent := time.Now()
		now, err := e.server.Put(tenure, e.name, Lease{Holder: e.name, Version: held.Version})
		switch {
		case err == nil:
			held = now
			alarm.Reset(time.Until(sent.Add(RenewDeadline)))
		case errors.Is(err, ErrConflict):
			lose(ErrLost)
		}
	}
}
