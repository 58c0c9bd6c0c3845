// Package reflector keeps a cache equal to a server, whatever the server does.
package reflector

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Options has the durations of a reflector.
type Options struct {
	// Min and Max are the shortest and the longest pause.
	Min, Max time.Duration
	// Timeout is how long the server is asked to keep a watch open. Grace is how long after that the reflector ends it.
	Timeout, Grace time.Duration
	// Rand returns random numbers in [0,1).
	Rand func() float64
}

// Reflector keeps a cache equal to a server.
type Reflector struct {
	server kube.Server
	cache  kube.Cache
	o      Options

	// position is the version up to which the cache has every change.
	position int
	// pause is the length of the next pause; 0 means Min.
	pause time.Duration
}

// New returns a reflector. It starts nothing.
func New(server kube.Server, cache kube.Cache, o Options) *Reflector {
	return &Reflector{server: server, cache: cache, o: o}
}

// state is what to do next.
type state struct {
	// list means to list, with that version. Otherwise the reflector watches from the position.
	list    bool
	version int
	// pause is how long to wait first.
	pause time.Duration
}

// Run keeps the cache equal to the server until ctx is done.
func (r *Reflector) Run(ctx context.Context) {
	for s := (state{list: true, version: kube.AnyAge}); ctx.Err() == nil; {
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
	case (errors.Is(err, kube.ErrGone) || errors.Is(err, kube.ErrAhead)) && s.version != kube.Newest:
		return state{list: true, version: kube.Newest}
	default:
		return state{list: true, version: s.version, pause: r.next(err)}
	}
}

func (r *Reflector) afterWatch(err error) state {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, errSilent):
		return state{}
	case errors.Is(err, kube.ErrGone):
		return state{list: true, version: r.position}
	default:
		return state{pause: r.next(err)}
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

// watch applies the changes after the position, and returns why the watch ended.
func (r *Reflector) watch(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.Timeout+r.o.Grace, errSilent)
	defer cancel()
	w, err := r.server.Watch(ctx, r.position, r.o.Timeout)
	if err != nil {
		return why(ctx, err)
	}
	defer w.Close()
	for opened, told := time.Now(), false; ; told = true {
		event, err := w.Next()
		if err != nil {
			good := told || time.Since(opened) >= time.Second
			if good {
				r.pause = 0
			} else if errors.Is(err, io.EOF) {
				return errAtOnce
			}
			return why(ctx, err)
		}
		if event.Type != kube.Bookmark {
			r.cache.Apply(event)
		}
		r.position = event.Object.Version
	}
}

// why returns the cause of ctx if ctx is done, and otherwise err.
func why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// next returns the length of the pause after err, and doubles the one after it.
func (r *Reflector) next(err error) time.Duration {
	pause := max(r.pause, r.o.Min)
	r.pause = min(2*pause, r.o.Max)
	pause += time.Duration(float64(pause) * r.o.Rand())
	if busy := (*kube.BusyError)(nil); errors.As(err, &busy) {
		pause = max(pause, busy.RetryAfter)
	}
	return pause
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
