// Package leader is the solution of task 12a.
package leader

import (
	"context"
	"errors"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
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
	return e.seen.Holder == "" || time.Since(e.since) >= LeaseDuration
}

// campaign reads the lease every RetryPeriod, beginning at once, and takes it when it may. It returns the stored lease
// and the time when the write was sent. It returns false when ctx is done.
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

// try reads the lease once, and takes it if that is allowed.
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

// serve runs work in a goroutine of its own, and renews the lease until work returns. If RenewDeadline has passed since
// the last accepted write was sent, serve ends the context of work with the cause ErrLost, and waits for work. If the
// process still leads when work returns, serve gives the lease back. It uses only the values of ctx.
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
		case errors.Is(err, kube.ErrConflict):
			lose(ErrLost)
		}
	}
}
