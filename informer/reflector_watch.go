package informer

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/objects"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// watch is stateWatch.
func (r *Reflector[T]) watch(ctx context.Context) state {
	why, err := r.converse(ctx, listwatch.WatchOptions{ResourceVersion: r.position}, func(ctx context.Context, w listwatch.Watch[T], _ context.CancelCauseFunc) (bool, error) {
		return r.follow(ctx, w)
	})
	return r.watchFailed(ctx, why, err)
}

// conversation reads a watch until it ends, and returns whether the position moved and why it ended. It may end the watch from
// elsewhere, too, by giveUp.
type conversation[T any] func(ctx context.Context, w listwatch.Watch[T], giveUp context.CancelCauseFunc) (moved bool, err error)

// converse opens a watch and gives it to f.
func (r *Reflector[T]) converse(ctx context.Context, o listwatch.WatchOptions, f conversation[T]) (failure, error) {
	o.Timeout = time.Duration(float64(r.o.WatchTimeout) * (1 + r.delays.Rand()))
	o.Exclusive = r.o.Transform != nil
	// A half-open connection says nothing for ever. The server promised to end the watch after the timeout.
	timed, cancel := context.WithTimeoutCause(ctx, o.Timeout+r.o.Grace, errSilent)
	defer cancel()
	live, giveUp := context.WithCancelCause(timed)
	defer giveUp(nil)
	defer r.interrupter.during(giveUp)()

	r.link.watches.Add(1)
	opened := time.Now()
	w, err := r.open(live, o, giveUp)
	if err != nil {
		why := classify(live, err)
		if why == failClosed && !o.SendInitialEvents {
			why = failBroken // No answer at all is not the good order in which a watch ends.
		}
		return why, err
	}
	defer w.Close()

	moved, err := f(live, w, giveUp)
	why := classify(live, err)
	lasted := time.Since(opened)
	if moved || lasted >= shortWatch {
		r.progress, r.serverErrors = true, 0
	} else if why == failClosed {
		return failBroken, errAtOnce
	}
	if why == failClosed && lasted < o.Timeout {
		why = failEarly
	}
	return why, err
}

// open opens a watch. One that is to begin with a list must not take longer for its first word than for any other of the list.
func (r *Reflector[T]) open(ctx context.Context, o listwatch.WatchOptions, giveUp context.CancelCauseFunc) (listwatch.Watch[T], error) {
	if o.SendInitialEvents {
		quiet := time.AfterFunc(r.o.Quiet, func() { giveUp(errEndless) })
		defer quiet.Stop()
	}
	return r.lw.Watch(ctx, o)
}

// follow appends the events of w until it ends, and returns whether they moved the position and why it ended.
func (r *Reflector[T]) follow(ctx context.Context, w listwatch.Watch[T]) (moved bool, err error) {
	r.link.watching(ctx)
	for {
		ev, err := w.Next(ctx)
		if err != nil {
			return moved, err
		}
		r.link.heard()
		back := objects.Older(ev.ResourceVersion, r.position)
		if back && r.doubtful(ev) {
			return moved, fmt.Errorf("%w: %s after %s", errDoubtful, ev.ResourceVersion, r.position)
		}
		d, err := r.delta(ctx, ev)
		if err != nil {
			return moved, err
		}
		if err := r.fifo.Push(ctx, d); err != nil {
			return moved, err
		}
		if back {
			// The cache knows what to do with it. The question is what the server is doing.
			return moved, fmt.Errorf("%w: %s after %s", errPast, ev.ResourceVersion, r.position)
		}
		if ev.ResourceVersion != "" {
			moved = moved || ev.ResourceVersion != r.position
			r.position = ev.ResourceVersion
		}
	}
}

// doubtful reports whether the cache could not tell what an event from the past is worth.
func (r *Reflector[T]) doubtful(ev listwatch.Event[T]) bool {
	switch ev.Type {
	case listwatch.Added, listwatch.Modified:
		return ev.Unreadable != nil || !objects.Missing(ev.Object) && r.o.Known != nil && !r.o.Known(objects.StateOf(ev.Object))
	default:
		return false
	}
}

// delta makes of an event what goes into the log.
func (r *Reflector[T]) delta(ctx context.Context, ev listwatch.Event[T]) (deltafifo.Delta[T], error) {
	d := deltafifo.Delta[T]{ResourceVersion: ev.ResourceVersion, Scope: r.o.Scope}
	switch ev.Type {
	case listwatch.Bookmark:
		r.link.bookmarks.Add(1)
		d.Type = deltafifo.Bookmark
		return d, nil
	case listwatch.Added, listwatch.Modified:
		d.Type = deltafifo.Upsert
	case listwatch.Removed:
		d.Type = deltafifo.Delete
	default:
		return d, &objects.DecodeError{What: "watch event", Err: fmt.Errorf("unknown type %q", ev.Type)}
	}
	r.link.events.Add(1)
	if u := ev.Unreadable; u != nil {
		d.Unreadable = []*objects.DecodeError{u}
		if d.Type == deltafifo.Delete {
			r.link.readable(u.Key, ev.ResourceVersion)
		} else {
			r.link.unreadable(ctx, u)
		}
		return d, nil
	}
	if objects.Missing(ev.Object) {
		return d, errNil
	}
	if len(r.link.unread) > 0 { // Only this goroutine writes it.
		r.link.readable(objects.Describe(ev.Object), ev.ResourceVersion)
	}
	var err error
	d.Object, err = r.transform(ev.Object)
	return d, err
}

// relistFor is relist, with the reason noted.
func (r *Reflector[T]) relistFor(why failure) state {
	r.because = why
	return r.relist()
}

// watchFailed decides what comes after a watch that ended.
func (r *Reflector[T]) watchFailed(ctx context.Context, f failure, err error) state {
	if ctx.Err() != nil {
		return stateWatch
	}
	if f != failClosed && f != failHistory {
		r.history.lost()
	}
	switch f {
	case failClosed, failHistory:
		return stateWatch // An interruption is seen to by turn.
	case failEarly:
		return stateVerify
	case failSilent:
		r.link.failed(ctx, "watch", errSilent)
		return stateVerify // It took minutes to get here; there is nothing to wait for.
	case failExpired:
		klog.FromContext(ctx).V(2).Info("The watch has expired", "resourceVersion", r.position, "reason", err.Error())
		if r.progress {
			r.progress = false
			return r.relistFor(f)
		}
		return r.pauseThen(retryAfter(err), r.relistFor(f))
	case failServer:
		r.link.failed(ctx, "watch", err)
		r.serverErrors++
		if r.serverErrors >= maxServerErrors {
			r.serverErrors = 0
			return r.pauseThen(retryAfter(err), r.relistFor(f))
		}
		if fromGateway(err) {
			return r.pauseThen(retryAfter(err), stateVerify)
		}
		return r.pauseThen(retryAfter(err), stateWatch)
	case failBusy:
		r.link.failed(ctx, "watch", err)
		return r.pauseThen(retryAfter(err), stateWatch)
	case failBroken, failAhead, failPast:
		r.link.failed(ctx, "watch", err)
		return r.pauseThen(retryAfter(err), stateVerify)
	default: // failSense, failRefused, failDoubtful
		r.link.failed(ctx, "watch", err)
		return r.pauseThen(retryAfter(err), r.relistFor(f))
	}
}
