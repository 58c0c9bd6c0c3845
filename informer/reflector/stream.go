package reflector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/objects"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// stream is stateStream.
func (r *Reflector[T]) stream(ctx context.Context) state {
	r.listing(ctx)
	o := listwatch.WatchOptions{SendInitialEvents: true}
	if !r.newest {
		// "" at first: a streamed list costs the server little even when it is the newest.
		o.ResourceVersion = r.position
	}
	opened, complete := false, false
	var held T // What the event under way is of, when it is held.
	o.Held = func(s objects.State) (found bool) {
		if !complete {
			held, found = r.held(s)
		}
		return found
	}
	why, err := r.session(ctx, o,
		func(ctx context.Context, w listwatch.Watch[T], giveUp context.CancelCauseFunc) (bool, error) {
			opened = true
			if err := r.initial(ctx, w, &held, giveUp); err != nil {
				return false, err
			}
			complete = true
			return r.follow(ctx, w)
		})
	if complete {
		return r.watchFailed(ctx, why, err)
	}
	return r.streamFailed(ctx, opened, why, err)
}

// initial collects the objects of a streamed list and appends them as one Replace. Nothing is appended before the
// server said that it was all. held is the object of an event marked Held.
func (r *Reflector[T]) initial(ctx context.Context, w listwatch.Watch[T], held *T,
	giveUp context.CancelCauseFunc,
) error {
	quiet := time.AfterFunc(r.o.Quiet, func() { giveUp(connection.ErrEndless) })
	defer quiet.Stop()
	list := newStreamedList[T]()
	for {
		ev, err := w.Next(ctx)
		if err != nil {
			return err
		}
		quiet.Reset(r.o.Quiet)
		r.status.Heard()
		if ev.Type == listwatch.Bookmark && ev.InitialEventsEnd {
			quiet.Stop()
			if !r.replace(ctx, list.complete(ev.ResourceVersion)) {
				return connection.ErrStale
			}
			return nil
		}
		switch {
		case ev.Held:
			ev.Object = *held
		case ev.Type != listwatch.Bookmark && ev.Unreadable == nil:
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
func (r *Reflector[T]) streamFailed(ctx context.Context, opened bool, why connection.Failure, err error) state {
	if ctx.Err() != nil {
		return stateStream
	}
	r.because = why
	log := klog.FromContext(ctx)
	switch why {
	case connection.History:
		return stateStream // Asking for the newest: see turn.
	case connection.Endless, connection.Refused: // Of an open watch, too.
		// What is refused may be the streaming, or all: a list will tell.
		r.unstreamed = true
		log.V(2).Info("The server does not stream lists", "reason", connection.Reason(err))
		return stateList
	case connection.Expired, connection.Ahead:
		if !r.newest {
			r.newest = true
			return stateStream
		}
	}
	if opened || why == connection.Closed || why == connection.Early {
		log.V(2).Info("A streamed list ended too early", "reason", connection.Reason(err))
		return stateList
	}
	r.status.Failed(ctx, "list", err)
	return r.pauseThen(connection.RetryAfter(err), stateStream)
}

// streamedList is a list as it comes in a watch: changes may be mixed with the objects.
type streamedList[T any] struct {
	objects []T
	// at has the position of each key in objects.
	at map[string]int
	// gone marks positions whose object was deleted while the list was under way, or became unreadable.
	gone map[int]bool
	// unreadable has the objects whose last state so far could not be decoded.
	unreadable map[string]*objects.DecodeError
}

func newStreamedList[T any]() *streamedList[T] {
	return &streamedList[T]{at: map[string]int{}, gone: map[int]bool{}, unreadable: map[string]*objects.DecodeError{}}
}

func (l *streamedList[T]) take(ev listwatch.Event[T]) error {
	if ev.Type == listwatch.Bookmark {
		return nil
	}
	key := ""
	if u := ev.Unreadable; u != nil {
		key = u.Key
	} else {
		key = objects.Describe(ev.Object)
	}
	delete(l.unreadable, key)
	i, known := l.at[key]
	switch ev.Type {
	case listwatch.Added, listwatch.Modified:
		if ev.Unreadable != nil {
			l.unreadable[key] = ev.Unreadable
			if known {
				l.gone[i] = true
			}
			break
		}
		if !known {
			i = len(l.objects)
			l.at[key] = i
			l.objects = append(l.objects, ev.Object)
		}
		l.objects[i] = ev.Object
		delete(l.gone, i)
	case listwatch.Removed:
		if known {
			l.gone[i] = true
		}
	default:
		return &objects.DecodeError{What: "watch event", Err: fmt.Errorf("unknown type %q", ev.Type)}
	}
	return nil
}

// complete returns what there is at version. The list is not used after that.
func (l *streamedList[T]) complete(version string) completeList[T] {
	return completeList[T]{objects: l.there(), unreadable: slices.Collect(maps.Values(l.unreadable)), version: version}
}

// there returns the objects that are there.
func (l *streamedList[T]) there() []T {
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
