package workqueue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

func TestDelaysEndInOrderOfDeadlineThenSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		q.AddAfter("late", 2*time.Second)
		for i := range 20 {
			q.AddAfter(fmt.Sprintf("same-%02d", i), time.Second)
		}
		q.AddAfter("early", time.Millisecond)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		wantKeys(t, q, "early")
		time.Sleep(time.Second)
		synctest.Wait()
		got := keys(t, q)
		if len(got) != 20 || !slices.IsSorted(got) {
			t.Fatalf("equal deadlines: got %q, want the order of the calls", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		wantKeys(t, q, "late")
	})
}

// Source: client-go v0.37.2 util/workqueue/delaying_queue.go, insert: the earlier readyAt is kept.
func TestAddAfterKeepsTheEarliest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		for i := 1000; i > 0; i-- {
			q.AddAfter("a", time.Duration(i)*time.Second)
			q.AddAfter("a", time.Hour)
		}
		if s := q.Stats(); s.Delayed != 1 {
			t.Fatalf("delays pending: got %d, want 1", s.Delayed)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		wantKeys(t, q, "a")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		wantKeys(t, q)
	})
}

func TestAddCancelsOnlyRequeueDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		q.RequeueAfter("own", time.Minute)
		q.AddRateLimited("retry")
		q.AddAfter("explicit", time.Minute)
		q.RequeueAfter("both", time.Second)
		q.AddAfter("both", time.Minute)
		for _, key := range []string{"own", "retry", "explicit", "both"} {
			q.Add(key)
		}
		wantKeys(t, q, "own", "retry", "explicit", "both")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		wantKeys(t, q)
		time.Sleep(time.Hour)
		synctest.Wait()
		wantKeys(t, q, "explicit", "both")
	})
}

func TestDelayEndsWhileProcessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		q.Add("a")
		get(t, q)
		q.AddAfter("a", time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if q.Len() != 0 {
			t.Fatal("a key that is processing became ready")
		}
		q.Done("a")
		wantKeys(t, q, "a")
	})
}

func TestDelayOutOfRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		q.AddAfter("negative", -1<<63)
		q.AddAfter("zero", 0)
		q.AddAfter("forever", 1<<63-1)
		q.RequeueAfter("forever too", 1<<63-1)
		wantKeys(t, q, "negative", "zero")
		time.Sleep(1000 * time.Hour)
		synctest.Wait()
		wantKeys(t, q)
	})
}

// A requeue delay is what the loop wants now: the last one counts, and a dirty key needs none.
func TestRequeueDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		q.RequeueAfter("a", time.Second)
		q.RequeueAfter("a", time.Minute)
		q.Add("queued")
		q.RequeueAfter("queued", time.Second)
		q.AddRateLimited("queued")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		wantKeys(t, q, "queued")
		time.Sleep(time.Minute)
		synctest.Wait()
		wantKeys(t, q, "a")
	})
}

// Under controller-runtime, handlers and the loop set the same delay. Earliest keeps the earlier of both.
func TestEarliestRequeueDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		later := workqueue.AddOptions{After: time.Hour, Requeue: true, Earliest: true}
		q.RequeueAfter("stays", time.Second)
		q.AddWith("stays", later)
		q.AddWith("falls", later)
		q.AddWith("falls", workqueue.AddOptions{After: 2 * time.Second, Requeue: true, Earliest: true})
		q.RequeueAfter("run", time.Second)
		q.AddWith("run", later)
		q.Add("run")
		wantKeys(t, q, "run")
		time.Sleep(time.Minute)
		synctest.Wait()
		wantKeys(t, q, "stays", "falls")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		wantKeys(t, q)
	})
}

// TestCancelRequeue cancels the requeue delay of a key. Its scheduled add and the delays of other keys stay.
func TestCancelRequeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		for _, key := range []string{"a", "b"} {
			q.RequeueAfter(key, time.Minute)
			q.AddAfter(key, time.Hour)
			q.RequeueAfter(key+" alone", time.Minute)
		}
		q.Add("at work")
		item, err := q.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		q.AddRateLimited(item.Key)
		for range 2 {
			q.CancelRequeue("a")
			q.CancelRequeue("a alone")
			q.CancelRequeue(item.Key)
			q.CancelRequeue("unknown")
		}
		q.Done(item.Key)
		if s := q.Stats(); s.Delayed != 4 || s.Depth != 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		wantKeys(t, q, "b", "b alone")
		time.Sleep(time.Hour)
		synctest.Wait()
		wantKeys(t, q, "a", "b")
	})
}

// TestCancelDelays cancels the delays of half of the keys. These are not handed out later; the others are.
func TestCancelDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		for i := range 50 {
			q.AddAfter(fmt.Sprint("gone/", i), time.Duration(50-i)*time.Second)
			q.RequeueAfter(fmt.Sprint("gone/", i), time.Duration(i)*time.Minute)
			q.AddAfter(fmt.Sprint("here/", i), time.Duration(i+1)*time.Second)
		}
		q.Add("gone/1")
		q.CancelDelays(slices.DeleteFunc(q.Delayed(),
			func(key string) bool { return !strings.HasPrefix(key, "gone/") })...)
		if s := q.Stats(); s.Delayed != 50 || s.Depth != 2 { // gone/0 had a requeue delay of zero
			t.Errorf("%+v", s)
		}
		wantKeys(t, q, "gone/0", "gone/1")
		for i := range 50 {
			time.Sleep(time.Second)
			synctest.Wait()
			wantKeys(t, q, fmt.Sprint("here/", i))
		}
		time.Sleep(time.Hour)
		wantKeys(t, q)
	})
}
