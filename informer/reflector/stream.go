package reflector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/objects"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// stream does what streaming says.
func (r *Reflector[T]) stream(ctx context.Context, s state) state {
	o := listwatch.WatchOptions{SendInitialEvents: true}
	if !s.asks.has(newest) {
		// "" at first: a streamed list costs the server little even when it is the newest.
		o.ResourceVersion = r.position
	}
	list := newStreamedList[T](s.asks, r.begin(ctx, s.because))
	open, complete := false, false
	o.Held = func(o objects.State) (found bool) {
		if !complete {
			list.held, found = r.held(s.asks, o)
		}
		return found
	}
	why, err := r.session(ctx, o,
		func(ctx context.Context, w listwatch.Watch[T], giveUp context.CancelCauseFunc) (bool, error) {
			open = true
			if err := r.initial(ctx, w, list, giveUp); err != nil {
				return false, err
			}
			complete = true
			return r.follow(ctx, w)
		})
	if complete {
		return r.watchEnded(ctx, why, err)
	}
	return r.recoverFrom(ctx, s, why, err,
		facts{older: !s.asks.has(newest), wasOpen: open, stale: errors.Is(err, connection.ErrStale)})
}

// initial collects the objects of a streamed list and appends them as one Replace. Nothing is appended before the
// server said that it was all.
func (r *Reflector[T]) initial(ctx context.Context, w listwatch.Watch[T], list *streamedList[T],
	giveUp context.CancelCauseFunc,
) error {
	quiet := time.AfterFunc(r.o.Quiet, func() { giveUp(connection.ErrEndless) })
	defer quiet.Stop()
	for {
		ev, err := w.Next(ctx)
		if err != nil {
			return err
		}
		quiet.Reset(r.o.Quiet)
		r.status.Heard()
		if ev.Type == listwatch.Bookmark && ev.InitialEventsEnd {
			quiet.Stop()
			return r.replace(ctx, list.asks, list.complete(ev.ResourceVersion))
		}
		switch {
		case ev.Held:
			ev.Object = list.held
		case ev.Type != listwatch.Bookmark && ev.Unreadable == nil:
			if ev.Object, err = r.listed(list.asks, ev.Object); err != nil {
				return err
			}
		}
		if err := list.take(ev); err != nil {
			return err
		}
	}
}

// streamedList is a list as it comes in a watch: changes may be mixed with the objects.
type streamedList[T any] struct {
	asks    effect // as in state
	history int64  // as in completeList
	// held is the object of the event under way, when that is marked Held.
	held    T
	objects []T
	// at has the position of each key in objects.
	at map[string]int
	// gone marks positions whose object was deleted while the list was under way, or became unreadable.
	gone map[int]bool
	// unreadable has the objects whose last state so far could not be decoded.
	unreadable map[string]*objects.DecodeError
}

func newStreamedList[T any](asks effect, history int64) *streamedList[T] {
	return &streamedList[T]{
		asks: asks, history: history,
		at: map[string]int{}, gone: map[int]bool{}, unreadable: map[string]*objects.DecodeError{},
	}
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
	return completeList[T]{l.there(), slices.Collect(maps.Values(l.unreadable)), version, l.history}
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
