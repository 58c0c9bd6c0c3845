package workqueue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

func TestShutDownHandsOutTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := q.Get(t.Context()); !errors.Is(err, workqueue.ErrShutDown) {
					t.Errorf("Get while waiting: got %v, want ErrShutDown", err)
				}
			})
		}
		synctest.Wait()
		q.ShutDown()
		q.ShutDown()
		wg.Wait()

		q = workqueue.New(workqueue.Options[string]{})
		q.Add("a")
		q.Add("b")
		get(t, q)
		q.Add("a")
		q.AddAfter("c", time.Second)
		q.ShutDown()
		q.Add("d")
		q.AddAfter("d", time.Second)
		q.AddRateLimited("d")
		q.Done("a")
		wantKeys(t, q, "b", "a")
		if _, err := q.Get(t.Context()); !errors.Is(err, workqueue.ErrShutDown) {
			t.Errorf("Get: got %v, want ErrShutDown", err)
		}
		if n := q.NumRequeues("d"); n != 0 {
			t.Errorf("the limiter was charged %d times by a queue that was shut down", n)
		}
	})
}

func TestDrainWaitsForAllWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		for _, key := range []string{"a", "b", "c"} {
			q.Add(key)
		}
		get(t, q)
		q.Add("a")
		q.AddAfter("due", time.Second)
		q.AddAfter("not due", time.Hour)
		time.Sleep(time.Second)
		var drained atomic.Int32
		for range 5 {
			go func() {
				if err := q.Drain(t.Context()); err != nil {
					t.Errorf("Drain: %v", err)
				}
				drained.Add(1)
			}()
		}
		synctest.Wait()
		q.Done("a")
		synctest.Wait()
		if drained.Load() != 0 {
			t.Fatal("Drain returned with keys left")
		}
		wantKeys(t, q, "b", "c", "due", "a")
		synctest.Wait()
		if drained.Load() != 5 {
			t.Fatalf("%d of 5 Drains returned", drained.Load())
		}
	})
}

func TestDrainReportsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		q.Add("a")
		q.Add("b")
		get(t, q)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := q.Drain(ctx)
		var left *workqueue.DrainError
		if !errors.As(err, &left) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Drain: got %v, want a DrainError for the deadline", err)
		}
		if !slices.Equal(left.Queued, []string{"b"}) || !slices.Equal(left.Processing, []string{"a"}) {
			t.Errorf("left: %v", left)
		}
		go func() {
			time.Sleep(time.Second)
			q.ShutDown()
		}()
		if err := q.Drain(t.Context()); !errors.Is(err, workqueue.ErrShutDown) {
			t.Errorf("Drain that ShutDown ends: got %v, want ErrShutDown", err)
		}
	})
}

// drainNow returns the error of a Drain that does not wait.
func drainNow(t *testing.T, q *workqueue.Queue[string]) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := q.Drain(ctx)
	if err == nil {
		t.Fatal("Drain: nothing is left")
	}
	return err
}

// If New or an Add started a goroutine, it would outlive the bubble, which would panic.
func TestQueueHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{QueueingTime: true})
		q.Add("a")
		q.AddAfter("b", time.Hour)
		get(t, q)
	})
}

// An expiring delay, ShutDown and adds may meet at one instant.
func TestShutDownWhileDelaysEnd(t *testing.T) {
	for range 200 {
		q := workqueue.New(workqueue.Options[int]{})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for key := range 20 {
					q.AddAfter(i*20+key, time.Duration(key)*time.Microsecond)
				}
			})
		}
		wg.Go(q.ShutDown)
		wg.Wait()
		q.ShutDown()
	}
}
