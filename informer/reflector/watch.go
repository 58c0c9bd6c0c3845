package reflector

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/objects"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/internal/versions"
)

// watch does what watching says.
func (r *Reflector[T]) watch(ctx context.Context) state {
	why, err := r.session(ctx, listwatch.WatchOptions{ResourceVersion: r.position},
		func(ctx context.Context, w listwatch.Watch[T], _ context.CancelCauseFunc) (bool, error) {
			return r.follow(ctx, w)
		})
	return r.watchEnded(ctx, why, err)
}

// watchEnded decides what comes after a watch, or what had become one.
func (r *Reflector[T]) watchEnded(ctx context.Context, why connection.Failure, err error) state {
	switch why {
	case connection.Silent:
		err = connection.ErrSilent
	case connection.ServerError:
		r.serverErrors++
	}
	return r.recoverFrom(ctx, state{kind: watching}, why, err, facts{
		progress: r.progress, third: r.serverErrors%maxServerErrors == 0, gateway: connection.FromGateway(err),
	})
}

// sessionReader reads the events of a watch session until it ends, and returns whether the position moved and why
// it ended. It may end the watch from elsewhere, too, by giveUp.
type sessionReader[T any] func(ctx context.Context, w listwatch.Watch[T],
	giveUp context.CancelCauseFunc) (moved bool, err error)

// session opens a watch and gives it to f.
func (r *Reflector[T]) session(ctx context.Context, o listwatch.WatchOptions,
	f sessionReader[T],
) (connection.Failure, error) {
	o.Timeout = time.Duration(float64(r.o.WatchTimeout) * (1 + r.delays.Rand()))
	o.Exclusive = r.o.Transform != nil
	// A half-open connection says nothing for ever. The server promised to end the watch after the timeout.
	timed, cancel := context.WithTimeoutCause(ctx, o.Timeout+r.o.Grace, connection.ErrSilent)
	defer cancel()
	live, giveUp := context.WithCancelCause(timed)
	defer giveUp(nil)
	defer r.status.During(giveUp)()

	r.status.Watches.Add(1)
	opened := time.Now()
	w, err := r.open(live, o, giveUp)
	if err != nil {
		why := connection.Classify(live, err)
		if why == connection.Closed && !o.SendInitialEvents {
			why = connection.Broken // No answer at all is not the good order in which a watch ends.
		}
		return why, err
	}
	defer w.Close()

	moved, err := f(live, w, giveUp)
	why := connection.Classify(live, err)
	lasted := time.Since(opened)
	if moved || lasted >= shortWatch {
		r.progress, r.serverErrors = true, 0
	} else if why == connection.Closed {
		return connection.Broken, connection.ErrAtOnce
	}
	if why == connection.Closed && lasted < o.Timeout {
		why = connection.Early
	}
	return why, err
}

// open opens a watch. One that is to begin with a list must not take longer for its first word than for any other
// of the list.
func (r *Reflector[T]) open(ctx context.Context, o listwatch.WatchOptions,
	giveUp context.CancelCauseFunc,
) (listwatch.Watch[T], error) {
	if o.SendInitialEvents {
		quiet := time.AfterFunc(r.o.Quiet, func() { giveUp(connection.ErrEndless) })
		defer quiet.Stop()
	}
	return r.lw.Watch(ctx, o)
}

// follow appends the events of w until it ends, and returns whether they moved the position and why it ended.
func (r *Reflector[T]) follow(ctx context.Context, w listwatch.Watch[T]) (moved bool, err error) {
	r.status.Watching(ctx)
	for {
		ev, err := w.Next(ctx)
		if err != nil {
			return moved, err
		}
		r.status.Heard()
		if r.trace != nil && ev.Type != listwatch.Bookmark {
			r.record(&ev)
		}
		back := versions.Earlier(ev.ResourceVersion, r.position)
		if back && r.unverifiable(ev) {
			return moved, fmt.Errorf("%w: %s after %s", connection.ErrUnverifiable, ev.ResourceVersion, r.position)
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
			return moved, fmt.Errorf("%w: %s after %s", connection.ErrPast, ev.ResourceVersion, r.position)
		}
		if ev.ResourceVersion != "" {
			moved = moved || ev.ResourceVersion != r.position
			r.position = ev.ResourceVersion
		}
	}
}

// record tells the Recorder of an event about an object whose name is known.
func (r *Reflector[T]) record(ev *listwatch.Event[T]) {
	s, err := trace.Subject{Resource: r.o.Resource}, error(nil)
	if u := ev.Unreadable; u != nil {
		s, err = trace.SubjectOf(r.o.Resource, u.Key), u
	} else if m, ok := any(ev.Object).(metav1.Object); ok && !objects.Missing(ev.Object) {
		s.Namespace, s.Name = m.GetNamespace(), m.GetName()
	}
	if s.Name != "" {
		r.trace.Received(s, string(ev.Type), ev.ResourceVersion, trace.FormOf[T](), err)
	}
}

// unverifiable reports whether the cache could not tell what an event from the past is worth.
func (r *Reflector[T]) unverifiable(ev listwatch.Event[T]) bool {
	switch ev.Type {
	case listwatch.Added, listwatch.Modified:
		return ev.Unreadable != nil || !objects.Missing(ev.Object) && !r.known(ev.Object)
	default:
		return false
	}
}

// known reports whether the cache holds the object in some state, and everything appended is in the cache: the
// object's deletion may be on the way.
func (r *Reflector[T]) known(obj T) bool {
	return r.o.Cache == nil || r.fifo.Pending() == 0 && r.o.Cache.Known(objects.StateOf(obj))
}

// delta makes of an event what goes into the log.
func (r *Reflector[T]) delta(ctx context.Context, ev listwatch.Event[T]) (deltafifo.Delta[T], error) {
	d := deltafifo.Delta[T]{ResourceVersion: ev.ResourceVersion, Scope: r.o.Scope}
	switch ev.Type {
	case listwatch.Bookmark:
		r.status.Bookmarks.Add(1)
		d.Type = deltafifo.Bookmark
		return d, nil
	case listwatch.Added, listwatch.Modified:
		d.Type = deltafifo.Upsert
	case listwatch.Removed:
		d.Type = deltafifo.Delete
	default:
		return d, &objects.DecodeError{What: "watch event", Err: fmt.Errorf("unknown type %q", ev.Type)}
	}
	r.status.Events.Add(1)
	if u := ev.Unreadable; u != nil {
		d.Unreadable = []*objects.DecodeError{u}
		if d.Type == deltafifo.Delete {
			r.status.Readable(u.Key, ev.ResourceVersion)
		} else {
			r.status.Unreadable(ctx, u)
		}
		return d, nil
	}
	if objects.Missing(ev.Object) {
		return d, connection.ErrNil
	}
	if r.status.AnyUnreadable() { // Only this goroutine writes it.
		r.status.Readable(objects.Describe(ev.Object), ev.ResourceVersion)
	}
	var err error
	d.Object, err = r.transform(ev.Object)
	return d, err
}
