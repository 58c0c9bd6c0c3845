package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// get takes a key that must be ready now.
func get(t *testing.T, q *workqueue.Queue[string]) workqueue.Item[string] {
	t.Helper()
	if q.Len() == 0 {
		t.Fatal("nothing is ready")
	}
	item, err := q.Get(t.Context())
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return item
}

// keys takes and finishes everything that is ready now.
func keys(t *testing.T, q *workqueue.Queue[string]) []string {
	t.Helper()
	var got []string
	for q.Len() > 0 {
		key := get(t, q).Key
		q.Done(key)
		got = append(got, key)
	}
	return got
}

func wantKeys(t *testing.T, q *workqueue.Queue[string], want ...string) {
	t.Helper()
	if got := keys(t, q); !slices.Equal(got, want) {
		t.Fatalf("ready keys: got %q, want %q", got, want)
	}
}

// Source: client-go v0.37.2 util/workqueue/queue.go, the comment on Typed.dirty and Add.
func TestAddWhileWaitingIsOneRun(t *testing.T) {
	q := workqueue.New(workqueue.Options[string]{})
	for range 1000 {
		q.Add("a")
	}
	q.Add("b")
	wantKeys(t, q, "a", "b")
}

// Source: client-go v0.37.2 util/workqueue/queue.go, Done: a key that is dirty when it is done is pushed again.
func TestAddWhileProcessingIsOneMoreRun(t *testing.T) {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("a")
	get(t, q)
	for range 10 {
		q.Add("a")
	}
	if q.Len() != 0 {
		t.Fatal("a key that is processing is ready: two workers could get it")
	}
	q.Done("a")
	wantKeys(t, q, "a")
}

func TestStrayDoneIsIgnored(t *testing.T) {
	q := workqueue.New(workqueue.Options[string]{})
	q.Done("never added")
	q.Add("a")
	q.Done("a")
	if q.Len() != 1 {
		t.Fatalf("Len after a stray Done: got %d, want 1", q.Len())
	}
	get(t, q)
	q.Add("a")
	q.Done("a")
	q.Done("a")
	wantKeys(t, q, "a")
}

func TestGetReturnsWhenContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Get(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Get: got %v, want deadline exceeded", err)
		}
		q.Add("a")
		if _, err := q.Get(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Get with a ready key and an ended context: got %v", err)
		}
		wantKeys(t, q, "a")
	})
}

// A Get that is woken and at the same instant gives up must not take the wake-up with it.
func TestLeavingWaiterPassesItsWakeUpOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		var got atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		defer q.ShutDown()
		for range 8 {
			go func() {
				if _, err := q.Get(t.Context()); err == nil {
					got.Add(1)
				}
			}()
		}
		synctest.Wait()
		for range 8 {
			go func() {
				if _, err := q.Get(ctx); err == nil {
					got.Add(1)
				}
			}()
		}
		synctest.Wait()
		for i := range 8 {
			q.Add(fmt.Sprint(i))
		}
		cancel()
		synctest.Wait()
		if got.Load() != 8 {
			t.Fatalf("%d of 8 keys handed out, %d ready", got.Load(), q.Len())
		}
	})
}

func TestCausesAreMergedAndBounded(t *testing.T) {
	q := workqueue.New(workqueue.Options[string]{MaxCauses: 2})
	cause := func(rv string) workqueue.Cause { return workqueue.Cause{Event: "Update", ResourceVersion: rv} }
	q.AddWithCause("a", cause("1"))
	q.AddWithCause("a", cause("2"))
	q.AddWithCause("a", cause("3"))
	first := get(t, q)
	if want := []workqueue.Cause{cause("1"), cause("2")}; !slices.Equal(first.Causes, want) ||
		first.DroppedCauses != 1 {
		t.Errorf("causes: got %v, %d dropped", first.Causes, first.DroppedCauses)
	}
	q.AddWithCause("a", cause("4"))
	if first.Causes[0] != cause("1") {
		t.Error("the causes of a run changed while it was going on")
	}
	q.Done("a")
	if second := get(t, q); len(second.Causes) != 1 || second.Causes[0] != cause("4") || second.DroppedCauses != 0 {
		t.Errorf("causes of the second run: %v", second)
	}
}

func TestAttemptAndQueuedAndPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{QueueingTime: true})
		defer q.ShutDown()
		q.Add("a")
		for want := range 3 {
			time.Sleep(7 * time.Second)
			synctest.Wait()
			if item := get(t, q); item.Attempt != want || item.Queued < 6*time.Second {
				t.Errorf("got %+v, want attempt %d", item, want)
			}
			q.AddRateLimited("a")
			q.Done("a")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		get(t, q)
		q.Forget("a")
		high, low := 7, -3
		q.AddWith("a", workqueue.AddOptions{Priority: &low})
		q.AddWith("a", workqueue.AddOptions{Priority: &high})
		q.Done("a")
		if item := get(t, q); item.Attempt != 0 || item.Priority != 7 {
			t.Errorf("after Forget: %+v", item)
		}
	})
}

func TestNoWorkerRunsAKeyThatAnotherRuns(t *testing.T) {
	const keyCount, workers, adders, rounds = 5, 8, 4, 2000
	q := workqueue.New(workqueue.Options[int]{})
	var running [keyCount]atomic.Int32
	var runs, adds atomic.Int64
	var workersDone, addersDone sync.WaitGroup
	for range workers {
		workersDone.Go(func() {
			for {
				item, err := q.Get(context.Background())
				if err != nil {
					return
				}
				if running[item.Key].Add(1) != 1 {
					t.Error("two workers have one key")
				}
				runs.Add(1)
				running[item.Key].Add(-1)
				q.Done(item.Key)
			}
		})
	}
	for a := range adders {
		addersDone.Go(func() {
			for i := range rounds {
				adds.Add(1)
				switch key := (a + i) % keyCount; i % 3 {
				case 0:
					q.AddAfter(key, time.Duration(i%7)*time.Microsecond)
				case 1:
					q.RequeueAfter(key, time.Duration(i%7)*time.Microsecond)
				default:
					q.Add(key)
				}
			}
		})
	}
	addersDone.Wait()
	if err := q.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	workersDone.Wait()
	if runs.Load() == 0 || runs.Load() > adds.Load() {
		t.Errorf("%d runs for %d adds", runs.Load(), adds.Load())
	}
}

func TestKeyThatCannotBeHashedDoesNotBlockTheQueue(t *testing.T) {
	q := workqueue.New(workqueue.Options[any]{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a slice was accepted as a key")
			}
		}()
		q.Add([]int{1})
	}()
	q.Add("a")
	if q.Len() != 1 {
		t.Errorf("Len: got %d, want 1", q.Len())
	}
}

type noMetrics struct{}

func (noMetrics) NewQueueMetrics(string, func() workqueue.Stats) workqueue.Metrics {
	return noMetrics{}
}

func (noMetrics) ObserveQueueDuration(time.Duration) {}

func (noMetrics) ObserveWorkDuration(time.Duration) {}

func TestNothingIsAllocatedInSteadyState(t *testing.T) {
	namespaces := workqueue.FairOptions[string]{Group: namespace}
	for name, o := range map[string]workqueue.Options[string]{
		"bare":     {},
		"time":     {QueueingTime: true},
		"metrics":  {Metrics: noMetrics{}},
		"priority": {Order: workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{})},
		"fair":     {Order: workqueue.NewFairOrder(namespaces)},
	} {
		q, ctx := workqueue.New(o), t.Context()
		all := make([]string, 3000) // more than the queue keeps at first
		for i := range all {
			all[i] = fmt.Sprintf("namespace-%d/name-%d", i%10, i)
		}
		cycle := func() {
			for i, key := range all {
				q.AddWithCause(key, workqueue.Cause{Source: "Pod", Event: "Update"})
				if i%3 != 2 {
					continue
				}
				for q.Len() > 0 {
					item, err := q.Get(ctx)
					if err != nil {
						t.Fatal(err)
					}
					q.Done(item.Key)
				}
			}
		}
		for range 20 { // until it has found out that as many keys come back, and keeps their entries
			cycle()
		}
		if n := testing.AllocsPerRun(5, cycle); n != 0 {
			t.Errorf("%s: %v allocations in 3000 runs", name, n)
		}
	}
}

// In each round, a wake-up may go to a worker that gives up at that moment. The one that waits on must get the key
// then.
func TestNoWakeUpIsLost(t *testing.T) {
	const rounds, impatient = 2000, 3
	q := workqueue.New(workqueue.Options[int]{})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	done := make(chan int, 1)
	work := func(ctx context.Context) bool {
		item, err := q.Get(ctx)
		if err == nil {
			q.Done(item.Key)
			done <- item.Key
		}
		return err == nil
	}
	var patient sync.WaitGroup
	patient.Go(func() {
		for work(ctx) {
		}
	})
	for key := range rounds {
		var round sync.WaitGroup
		for i := range impatient {
			round.Go(func() {
				short, cancel := context.WithTimeout(ctx, time.Duration((key+i)%20)*time.Microsecond)
				defer cancel()
				work(short)
			})
		}
		q.Add(key)
		round.Wait()
		select {
		case <-done:
		case <-ctx.Done():
			t.Fatalf("key %d was left lying", key)
		}
	}
	q.ShutDown()
	patient.Wait()
}
