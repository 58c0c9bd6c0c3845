package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/identity"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/internal/versions"
)

// watch runs the state watching.
func (r *Reflector[T]) watch(ctx context.Context) state {
	live, w := r.newSession(ctx, listwatch.WatchOptions{ResourceVersion: r.position})
	err := r.open(live, w)
	if err == nil {
		err = r.follow(live, w)
	}
	return r.afterWatch(ctx, r.close(live, w, err))
}

// afterWatch returns the state after a watch, or after a streamed list that had become one.
func (r *Reflector[T]) afterWatch(ctx context.Context, end ending) state {
	switch end.failure {
	case connection.Silent:
		end.err = connection.ErrSilent
	case connection.ServerError:
		r.serverErrors++
	}
	return r.recoverFrom(ctx, state{kind: watching}, end, facts{
		progress: r.progress, third: r.serverErrors%maxServerErrors == 0, gateway: connection.FromGateway(end.err),
	})
}

// session is one watch, from the request to its end.
type session[T any] struct {
	o listwatch.WatchOptions
	// watch is nil until the server has answered.
	watch  listwatch.Watch[T]
	opened time.Time
	// moved is true if an event or a bookmark moved the position.
	moved bool
	// abort ends the session from outside, with the reason as its cause.
	abort context.CancelCauseFunc
	// release frees the session's contexts, and keeps interruptions from it.
	release func()
}

// ending is how a request or session ended: its error, and what that means to the reflector.
type ending struct {
	failure connection.Failure
	err     error
}

// newSession prepares a watch. The context that it returns bounds everything that the session does.
func (r *Reflector[T]) newSession(ctx context.Context, o listwatch.WatchOptions) (context.Context, *session[T]) {
	o.Timeout = time.Duration(float64(r.o.WatchTimeout) * (1 + r.delays.Rand()))
	o.Exclusive = r.o.Transform != nil
	// The server promised to end the watch after the timeout. On a half-open connection nothing would ever come.
	timed, cancel := context.WithTimeoutCause(ctx, o.Timeout+r.o.Grace, connection.ErrSilent)
	live, abort := context.WithCancelCause(timed)
	unsubscribe := r.status.OnInterrupt(abort)
	return live, &session[T]{o: o, abort: abort, release: func() {
		unsubscribe()
		abort(nil)
		cancel()
	}}
}

// open sends the request. If the watch is to begin with a list, the server must answer within Options.Quiet.
func (r *Reflector[T]) open(live context.Context, s *session[T]) error {
	if s.o.SendInitialEvents {
		quiet := time.AfterFunc(r.o.Quiet, func() { s.abort(connection.ErrEndless) })
		defer quiet.Stop()
	}
	r.status.Watches.Add(1)
	s.opened = time.Now()
	w, err := r.lw.Watch(live, s.o)
	if err != nil {
		return err
	}
	s.watch = w
	return nil
}

// close ends the session and classifies err, the error that ended it. It also notes whether the session made progress.
func (r *Reflector[T]) close(live context.Context, s *session[T], err error) ending {
	end := ending{connection.Classify(live, err), err}
	lasted := time.Since(s.opened)
	if s.watch != nil {
		_ = s.watch.Close() // The stream has ended already, or is not wanted any more.
	}
	s.release()
	switch {
	case s.watch == nil:
		if end.failure == connection.Closed && !s.o.SendInitialEvents {
			end.failure = connection.Broken // The server hung up without an answer.
		}
	case s.moved || lasted >= shortWatch:
		r.progress, r.serverErrors = true, 0
		if end.failure == connection.Closed && lasted < s.o.Timeout {
			end.failure = connection.Early
		}
	case end.failure == connection.Closed:
		return ending{connection.Broken, connection.ErrAtOnce}
	}
	return end
}

// follow appends the events of a watch until it ends, and returns why it ended.
func (r *Reflector[T]) follow(ctx context.Context, s *session[T]) error {
	r.status.Watching(ctx)
	for {
		ev, err := s.watch.Next(ctx)
		if err != nil {
			return err
		}
		r.status.Received()
		if r.trace != nil && ev.Type != listwatch.Bookmark {
			r.record(&ev)
		}
		back := versions.Earlier(ev.ResourceVersion, r.position)
		if back && r.unverifiable(ev) {
			return fmt.Errorf("%w: %s after %s", connection.ErrUnverifiable, ev.ResourceVersion, r.position)
		}
		d, err := r.delta(ctx, ev)
		if err != nil {
			return err
		}
		if err := r.fifo.Push(ctx, d); err != nil {
			return err
		}
		if back {
			// The cache can deal with this event. But a server that sends an earlier version may have lost its history.
			return fmt.Errorf("%w: %s after %s", connection.ErrPast, ev.ResourceVersion, r.position)
		}
		if ev.ResourceVersion != "" {
			s.moved = s.moved || ev.ResourceVersion != r.position
			r.position = ev.ResourceVersion
		}
	}
}

// delta converts a watch event into a log entry.
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
	if identity.Missing(ev.Object) {
		return d, connection.ErrNil
	}
	if r.status.AnyUnreadable() {
		r.status.Readable(identity.Describe(ev.Object), ev.ResourceVersion)
	}
	var err error
	d.Object, err = r.transform(ev.Object)
	return d, err
}

// transform calls Options.Transform.
func (r *Reflector[T]) transform(obj T) (kept T, err error) {
	if r.o.Transform == nil {
		return obj, nil
	}
	name := identity.Describe(obj)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		} else if err == nil && identity.Missing(kept) {
			err = errors.New("it returned nil")
		}
		if err != nil {
			err = &connection.TransformError{Object: name, Err: err}
		}
	}()
	return r.o.Transform(obj)
}

// unverifiable reports whether the cache could not decide what to do with an event from before the position. If it
// does not hold the object, the object may have been deleted since, or the server may have left it out.
func (r *Reflector[T]) unverifiable(ev listwatch.Event[T]) bool {
	switch ev.Type {
	case listwatch.Added, listwatch.Modified:
		return ev.Unreadable != nil || !identity.Missing(ev.Object) && !r.known(ev.Object)
	default:
		return false
	}
}

// known reports whether the cache holds the object in some state. While deltas are pending it returns false: one of
// them may be the object's deletion.
func (r *Reflector[T]) known(obj T) bool {
	return r.o.Cache == nil || r.fifo.Pending() == 0 && r.o.Cache.Known(identity.State(obj))
}

// record traces an event, if the name of its object is known.
func (r *Reflector[T]) record(ev *listwatch.Event[T]) {
	s, err := trace.Subject{Resource: r.o.Resource}, error(nil)
	if u := ev.Unreadable; u != nil {
		s, err = trace.SubjectOf(r.o.Resource, u.Key), u
	} else if m, ok := any(ev.Object).(metav1.Object); ok && !identity.Missing(ev.Object) {
		s.Namespace, s.Name = m.GetNamespace(), m.GetName()
	}
	if s.Name != "" {
		r.trace.Received(s, string(ev.Type), ev.ResourceVersion, trace.FormOf(ev.Object), err)
	}
}
