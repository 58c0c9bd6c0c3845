package reflector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/identity"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
)

// stream runs the state streaming, and then, on the same connection, the state watching.
func (r *Reflector[T]) stream(ctx context.Context, s state) state {
	o := listwatch.WatchOptions{SendInitialEvents: true}
	if !s.list.has(newest) {
		// Before the first list, position is "", which asks for the newest state. To stream that costs the server
		// little.
		o.ResourceVersion = r.position
	}
	list := newStreamedList[T](s.list, r.begin(ctx, s.because))
	o.Held = func(os objects.State) (found bool) {
		if !list.appended {
			list.held, found = r.held(s.list, os)
		}
		return found
	}
	live, w := r.newSession(ctx, o)
	err := r.open(live, w)
	if err == nil {
		err = r.initial(live, w, list)
	}
	if list.appended {
		err = r.follow(live, w)
	}
	end := r.close(live, w, err)
	if list.appended {
		return r.afterWatch(ctx, end)
	}
	return r.recoverFrom(ctx, s, end,
		facts{older: !s.list.has(newest), wasOpen: w.watch != nil, stale: errors.Is(end.err, connection.ErrAhead)})
}

// initial collects the objects of a streamed list, and appends them as one Replace when the server marks their end.
// Nothing is appended before that.
func (r *Reflector[T]) initial(ctx context.Context, w *session[T], list *streamedList[T]) error {
	quiet := time.AfterFunc(r.o.Quiet, func() { w.abort(connection.ErrEndless) })
	defer quiet.Stop()
	for {
		ev, err := w.watch.Next(ctx)
		if err != nil {
			return err
		}
		quiet.Reset(r.o.Quiet)
		r.status.Received()
		if ev.Type == listwatch.Bookmark && ev.InitialEventsEnd {
			quiet.Stop()
			err := r.replace(ctx, list.how, list.complete(ev.ResourceVersion))
			list.appended = err == nil
			return err
		}
		switch {
		case ev.Held:
			ev.Object = list.held
		case ev.Type != listwatch.Bookmark && ev.Unreadable == nil:
			if ev.Object, err = r.keep(list.how, ev.Object); err != nil {
				return err
			}
		}
		if err := list.add(ev); err != nil {
			return err
		}
	}
}

// streamedList is a list that arrives as watch events. Changes may come among the initial objects.
type streamedList[T any] struct {
	how     effect // state.list
	history int64  // as in completeList
	// appended is true once the list is in the log.
	appended bool
	// held is the cached object for the current event, if the event is marked Held.
	held    T
	objects []T
	// at has the position of each key in objects.
	at map[string]int
	// gone marks positions whose object was deleted, or became unreadable, while the list arrived.
	gone map[int]bool
	// unreadable has the objects whose latest state could not be decoded.
	unreadable map[string]*objects.DecodeError
}

func newStreamedList[T any](how effect, history int64) *streamedList[T] {
	return &streamedList[T]{
		how: how, history: history,
		at: map[string]int{}, gone: map[int]bool{}, unreadable: map[string]*objects.DecodeError{},
	}
}

func (l *streamedList[T]) add(ev listwatch.Event[T]) error {
	if ev.Type == listwatch.Bookmark {
		return nil
	}
	key := ""
	if u := ev.Unreadable; u != nil {
		key = u.Key
	} else {
		key = identity.Describe(ev.Object)
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

// complete returns the list as it is at version. l must not be used afterwards.
func (l *streamedList[T]) complete(version string) completeList[T] {
	kept := l.objects
	if len(l.gone) > 0 {
		kept = l.objects[:0]
		for i, obj := range l.objects {
			if !l.gone[i] {
				kept = append(kept, obj)
			}
		}
	}
	return completeList[T]{kept, slices.Collect(maps.Values(l.unreadable)), version, l.history}
}
