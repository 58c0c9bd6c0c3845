package workqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestNext finishes a key and takes another.
func TestNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{})
		take := func(done, want string) {
			t.Helper()
			item := Item[string]{Key: done}
			if err := q.Next(t.Context(), &item); err != nil || item.Key != want {
				t.Errorf("Next of %s: %s, %v, want %s", done, item.Key, err, want)
			}
		}
		q.Add("a")
		q.Add("b")
		take("never taken", "a")
		q.Add("a") // Once more after this run, and after b.
		take("a", "b")
		take("b", "a")
		time.AfterFunc(time.Second, func() { q.Add("c") })
		take("a", "c")

		stopped, stop := context.WithCancel(t.Context())
		stop()
		q.Add("d")
		if err := q.Next(stopped, &Item[string]{Key: "c"}); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that is done: %v", err)
		}
		if s := q.Stats(); s.Processing != 0 || s.Depth != 1 {
			t.Errorf("afterwards %d keys are processing and %d ready", s.Processing, s.Depth)
		}
		take("c", "d")
		q.ShutDown()
		if err := q.Next(t.Context(), &Item[string]{Key: "d"}); !errors.Is(err, ErrShutDown) {
			t.Errorf("of a queue that was shut down: %v", err)
		}
	})
}

// TestNextOfForeignItem: Next finishes the key of an item that the caller has made, or that another queue gave.
func TestNextOfForeignItem(t *testing.T) {
	other := New(Options[string]{})
	for n := range blockSize {
		other.Add(fmt.Sprint(n))
	}
	other.Add("b") // Under an id that the queue below does not have.
	foreign := Item[string]{}
	for foreign.Key != "b" {
		item, err := other.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		foreign = item
	}
	for name, item := range map[string]Item[string]{"made": {Key: "b"}, "foreign": foreign} {
		q := New(Options[string]{})
		for _, key := range []string{"a", "b"} {
			q.Add(key)
			if _, err := q.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		q.Add("c")
		if err := q.Next(t.Context(), &item); err != nil || item.Key != "c" {
			t.Errorf("%s: got %q, %v, want c", name, item.Key, err)
		}
		if n := q.Stats().Processing; n != 2 {
			t.Errorf("%s: %d keys are processing, want a and c", name, n)
		}
	}
}

// durations records what is observed.
type durations struct{ queued, worked []time.Duration }

func (d *durations) NewQueueMetrics(string, func() Stats) Metrics { return d }
func (d *durations) ObserveQueueDuration(t time.Duration)         { d.queued = append(d.queued, t) }
func (d *durations) ObserveWorkDuration(t time.Duration)          { d.worked = append(d.worked, t) }

// TestNextReportsBeforeItWaits checks that the duration of a run is observed when it is done, not when the next begins.
func TestNextReportsBeforeItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d durations
		q := New(Options[string]{Metrics: &d})
		defer q.ShutDown()
		q.Add("a")
		q.Add("b")
		item, err := q.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := q.Next(t.Context(), &item); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		go func() { _ = q.Next(t.Context(), &item) }()
		synctest.Wait()
		if want := []time.Duration{time.Second, 2 * time.Second}; !slices.Equal(d.worked, want) {
			t.Errorf("worked: %v, want %v", d.worked, want)
		}
		if want := []time.Duration{0, time.Second}; !slices.Equal(d.queued, want) {
			t.Errorf("queued: %v, want %v", d.queued, want)
		}
		q.ShutDown()
		synctest.Wait()
	})
}

// TestAddsThatFindTheLockTaken adds keys while the lock is held. The adds return at once, and take effect
// in their order when the lock is released.
func TestAddsThatFindTheLockTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[string]{Order: NewPriorityOrder[string](PriorityOptions{})})
		high := 5
		q.mu.Lock()
		q.AddWith("plain", AddOptions{})
		q.AddWithCause("caused", Cause{Event: "Update", ResourceVersion: "1"})
		q.AddWithCause("caused", Cause{Event: "Update", ResourceVersion: "2"})
		q.AddWith("first", AddOptions{Priority: &high, Cause: Cause{Event: "Delete"}})
		q.AddAfter("later", time.Second)
		q.RequeueAfter("again", time.Second/2)
		q.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		var got []string
		for range 5 {
			item, err := q.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var versions []string
			for _, c := range item.Causes {
				versions = append(versions, c.Event+c.ResourceVersion)
			}
			got = append(got, fmt.Sprint(item.Key, item.Priority, item.Attempt, versions))
		}
		want := []string{
			"first5 0 [Delete]", "plain0 0 []", "caused0 0 [Update1 Update2]", "again0 0 []", "later0 0 []",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		q.mu.Lock()
		q.Add("too late") // The lock's holder shuts the queue down first.
		q.stopIntakeLocked()
		q.mu.Unlock()
		if n := q.Len(); n != 0 {
			t.Errorf("%d keys were added after the shutdown", n)
		}
		q.ShutDown()
	})
}

// TestNothingIsLostBesideWorkers adds keys from several goroutines beside workers that use Next. Each add is followed
// by a run of its key that began after it.
func TestNothingIsLostBesideWorkers(t *testing.T) {
	const producers, workers, adds, keys = 3, 8, 5_000, 50
	q := New(Options[int]{})
	var mu sync.Mutex
	added, seen := [keys]int{}, [keys]int{}
	var working, producing sync.WaitGroup
	for range workers {
		working.Go(func() {
			item, err := q.Get(context.Background())
			for err == nil {
				mu.Lock()
				seen[item.Key] = added[item.Key]
				mu.Unlock()
				err = q.Next(context.Background(), &item)
			}
		})
	}
	for p := range producers {
		producing.Go(func() {
			for n := range adds {
				key := (n*7 + p) % keys
				mu.Lock()
				added[key]++
				mu.Unlock()
				q.Add(key)
			}
		})
	}
	producing.Wait()
	if err := q.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	working.Wait()
	if added != seen {
		t.Errorf("added %v\nseen  %v", added, seen)
	}
}
