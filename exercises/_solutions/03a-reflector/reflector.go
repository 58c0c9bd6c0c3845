// Package reflector follows a server, whatever the server does.
package reflector

import (
	"context"
	"errors"
	"io"
	"time"
)

// Options say how long to wait.
type Options struct {
	// Min and Max are the shortest and the longest pause.
	Min, Max time.Duration
	// Timeout is how long the server is asked to keep a watch, and Grace how much later it is given up.
	Timeout, Grace time.Duration
	// Rand returns numbers in [0,1).
	Rand func() float64
}

// Reflector follows a server.
type Reflector struct {
	server Server
	cache  Cache
	o      Options

	// position is the version up to which the cache has everything.
	position int
	// pause is the next one; 0 means Min.
	pause time.Duration
}

// New returns a reflector. It starts nothing.
func New(server Server, cache Cache, o Options) *Reflector {
	return &Reflector{server: server, cache: cache, o: o}
}

// state is what to do next.
type state struct {
	// list is whether to list, at a version. Otherwise it is to watch from the position.
	list    bool
	version int
	// pause is how long to wait before.
	pause time.Duration
}

// Run follows the server until ctx is done.
func (r *Reflector) Run(ctx context.Context) {
	for s := (state{list: true, version: AnyAge}); ctx.Err() == nil; {
		switch {
		case s.pause > 0:
			sleep(ctx, s.pause)
			s.pause = 0
		case s.list:
			s = r.afterList(s, r.list(ctx, s.version))
		default:
			s = r.afterWatch(r.watch(ctx))
		}
	}
}

func (r *Reflector) afterList(s state, err error) state {
	switch {
	case err == nil:
		return state{}
	case (errors.Is(err, ErrGone) || errors.Is(err, ErrAhead)) && s.version != Newest:
		return state{list: true, version: Newest}
	default:
		return state{list: true, version: s.version, pause: r.next()}
	}
}

func (r *Reflector) afterWatch(err error) state {
	busy := &BusyError{}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, errSilent):
		return state{}
	case errors.As(err, &busy):
		return state{pause: max(busy.RetryAfter, r.next())}
	case errors.Is(err, ErrGone):
		return state{list: true, version: r.position}
	default:
		return state{pause: r.next()}
	}
}

func (r *Reflector) list(ctx context.Context, version int) error {
	all, err := r.server.List(ctx, version)
	if err != nil {
		return err
	}
	r.cache.Replace(all)
	r.position = all.Version
	return nil
}

var (
	errSilent = errors.New("the watch was silent for too long")
	errAtOnce = errors.New("the watch was closed at once")
)

// watch follows the changes after the position, and returns why they ended.
func (r *Reflector) watch(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.Timeout+r.o.Grace, errSilent)
	defer cancel()
	w, err := r.server.Watch(ctx, r.position, r.o.Timeout)
	if err != nil {
		return why(ctx, err)
	}
	defer w.Close()
	for opened, told := time.Now(), false; ; told = true {
		event, err := w.Next(ctx)
		if err != nil {
			good := told || time.Since(opened) >= time.Second
			if good {
				r.pause = 0
			} else if errors.Is(err, io.EOF) {
				return errAtOnce
			}
			return why(ctx, err)
		}
		if event.Type != "BOOKMARK" {
			r.cache.Apply(event)
		}
		r.position = event.Object.Version
	}
}

// why prefers the reason for which ctx ended.
func why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// next returns the next pause.
func (r *Reflector) next() time.Duration {
	pause := max(r.pause, r.o.Min)
	r.pause = min(2*pause, r.o.Max)
	return pause + time.Duration(float64(pause)*r.o.Rand())
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
