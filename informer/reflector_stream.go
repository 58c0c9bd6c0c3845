package informer

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"
)

// stream is stateStream.
func (r *Reflector[T]) stream(ctx context.Context) state {
	r.listing(ctx)
	o := WatchOptions{SendInitialEvents: true}
	if !r.newest {
		o.ResourceVersion = r.position // "" at first: a streamed list costs the server little even when it is the newest.
	}
	complete := false
	why, err := r.converse(ctx, o, func(ctx context.Context, w Watch[T], giveUp context.CancelCauseFunc) (int, error) {
		if err := r.initial(ctx, w, giveUp); err != nil {
			return 0, err
		}
		complete = true
		return r.follow(ctx, w)
	})
	if complete {
		return r.watchFailed(ctx, why, err)
	}
	return r.streamFailed(ctx, why, err)
}

// initial collects the objects of a streamed list and appends them as one Replace. Nothing is appended before the server said
// that it was all.
func (r *Reflector[T]) initial(ctx context.Context, w Watch[T], giveUp context.CancelCauseFunc) error {
	quiet := time.AfterFunc(r.o.Quiet, func() { giveUp(errEndless) })
	defer quiet.Stop()
	list := newStreamedList[T]()
	for {
		ev, err := w.Next(ctx)
		if err != nil {
			return err
		}
		quiet.Reset(r.o.Quiet)
		r.link.heard()
		if ev.Type == Bookmark && ev.InitialEventsEnd {
			quiet.Stop()
			if !r.replace(ctx, list.objs(), ev.ResourceVersion) {
				return errStale
			}
			return nil
		}
		if ev.Type != Bookmark {
			if ev.Object, err = r.listed(ev.Object); err != nil {
				return err
			}
		}
		if err := list.take(ev); err != nil {
			return err
		}
	}
}

// streamFailed decides what comes after a streamed list that was not completed.
func (r *Reflector[T]) streamFailed(ctx context.Context, why failure, err error) state {
	if ctx.Err() != nil {
		return stateStream
	}
	log := klog.FromContext(ctx)
	switch why {
	case failEndless, failRefused:
		// What is refused may be the streaming, or all: a list will tell.
		r.unstreamed = true
		log.V(2).Info("The server does not stream lists", "reason", reason(err))
		return stateList
	case failClosed:
		log.V(2).Info("The server ended a streamed list too early")
		return stateList
	case failExpired, failAhead:
		if !r.newest {
			r.newest = true
			return stateStream
		}
	}
	r.link.failed(ctx, "list", err)
	return r.pauseThen(retryAfter(err), stateStream)
}

// streamedList is a list as it comes in a watch: changes may be mixed with the objects.
type streamedList[T any] struct {
	objects []T
	// at has the position of each key in objects.
	at map[string]int
	// gone marks positions whose object was deleted while the list was under way.
	gone map[int]bool
}

func newStreamedList[T any]() *streamedList[T] {
	return &streamedList[T]{at: map[string]int{}, gone: map[int]bool{}}
}

func (l *streamedList[T]) take(ev Event[T]) error {
	if ev.Type == Bookmark {
		return nil
	}
	key := describe(ev.Object)
	i, known := l.at[key]
	switch ev.Type {
	case Added, Modified:
		if !known {
			i = len(l.objects)
			l.at[key] = i
			l.objects = append(l.objects, ev.Object)
		}
		l.objects[i] = ev.Object
		delete(l.gone, i)
	case Removed:
		if known {
			l.gone[i] = true
		}
	default:
		return &DecodeError{What: "watch event", Err: fmt.Errorf("unknown type %q", ev.Type)}
	}
	return nil
}

// objs returns what there is. The list is not used after that.
func (l *streamedList[T]) objs() []T {
	if len(l.gone) == 0 {
		return l.objects
	}
	kept := l.objects[:0]
	for i, obj := range l.objects {
		if !l.gone[i] {
			kept = append(kept, obj)
		}
	}
	return kept
}
