package fanout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/indexer"
)

// TestWhatCameAndWentUnseenIsForgotten: objects that a stuck handler never saw take no memory once they are gone.
func TestWhatCameAndWentUnseenIsForgotten(t *testing.T) {
	m := newCoalesced[int]()
	stays := 1
	m.merge(&Batch[int]{Changes: []indexer.Change[int]{{Type: indexer.ChangeAdd, Key: "default/stays", New: stays}}})
	for i := range 10_000 {
		key := fmt.Sprint("default/", i)
		m.merge(
			&Batch[int]{
				Changes: []indexer.Change[int]{
					{Type: indexer.ChangeAdd, Key: key, New: stays},
					{Type: indexer.ChangeDelete, Key: key, Old: stays, New: stays},
				},
			},
		)
	}
	if len(m.objects) != 1 || len(m.order) > 4 {
		t.Errorf("%d objects, %d in order", len(m.objects), len(m.order))
	}
	if b := m.batch(); len(b.Changes) != 1 || b.Changes[0].New != stays {
		t.Errorf("%d changes", len(b.Changes))
	}
}

// TestFewLargeBatchesAreMerged: a busy server makes few batches with many changes, so the changes must be counted as
// well as the batches.
func TestFewLargeBatchesAreMerged(t *testing.T) {
	f := New[int](handler.ContainPanics)
	l, err := f.Join(handler.Handler[int]{}, handler.Options{}, Batch[int]{})
	if err != nil {
		t.Fatal(err)
	}
	l.served = true // As if by a goroutine that is stuck.
	one, two := 1, 2
	for range 3 {
		f.Publish(
			Batch[int]{
				Changes: slices.Repeat(
					[]indexer.Change[int]{{Type: indexer.ChangeUpdate, Key: "default/a", Old: one, New: two}},
					maxBehind/2+1,
				),
			},
		)
	}
	if st := l.Stats(); st.Pending != 1 || st.Merged != 3*(maxBehind/2+1)-1 {
		t.Errorf("%+v", st)
	}
}

// TestResyncIsMonotonic (case 23): the times of resyncs have a monotonic clock reading, so setting the clock does not
// cause a burst of resyncs. (In a bubble, times have no such reading.)
func TestResyncIsMonotonic(t *testing.T) {
	f := New[int](handler.ContainPanics)
	if _, err := f.Join(handler.Handler[int]{}, handler.Options{Resync: time.Minute}, Batch[int]{}); err != nil {
		t.Fatal(err)
	}
	if _, at := f.DueResync(); !strings.Contains(at.String(), " m=+") {
		t.Errorf("resync at %v", at)
	}
}

// TestStopEndsRemoval: a handler that is being removed does not keep Stop waiting for all that it has still to receive.
// The removal reports what was dropped.
func TestStopEndsRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New[int](handler.ContainPanics)
		calls, release := 0, make(chan struct{})
		l, err := f.Join(handler.Handler[int]{OnAdd: func(int, bool) {
			calls++
			<-release
		}}, handler.Options{}, Batch[int]{})
		if err != nil {
			t.Fatal(err)
		}
		f.Wake(f.Publish(Batch[int]{Changes: []indexer.Change[int]{{Key: "a"}, {Key: "b"}, {Key: "c"}}}))
		removed := make(chan error, 1)
		go func() { removed <- l.remove(t.Context()) }()
		synctest.Wait()
		go f.Stop()
		synctest.Wait()
		close(release)
		err = <-removed
		left := (*handler.UndeliveredError)(nil)
		if !errors.As(err, &left) || left.Count != 2 || !errors.Is(err, handler.ErrStopped) || calls != 1 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}
