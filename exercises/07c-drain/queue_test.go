package queue

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// work takes keys until the queue ends. Each takes a second.
func work(q *Queue[string], finished *int) {
	for {
		key, ok := q.Get()
		if !ok {
			return
		}
		time.Sleep(time.Second)
		*finished++
		q.Done(key)
		time.Sleep(time.Millisecond) // The worker writes a line to its log.
	}
}

// run runs a test in virtual time, and lets the workers end after it.
func run(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute)
		test(t)
	})
}

func Test1DrainWaitsForTheKeysThatWait(t *testing.T) {
	run(t, func(t *testing.T) {
		q, finished := New[string](), 0
		for _, key := range []string{"a", "b", "c"} {
			q.Add(key)
		}
		go work(q, &finished)
		synctest.Wait() // The worker has a.
		q.Drain()
		if finished != 3 {
			t.Fatalf("Three keys were in the queue, and Drain returned after %d of them: %d were still waiting.\n"+
				"The program exits now, and the work on them is lost.", finished, q.Len())
		}
	})
}

func Test2DrainWaitsForAKeyThatIsAddedAgain(t *testing.T) {
	run(t, func(t *testing.T) {
		q, finished := New[string](), 0
		q.Add("a")
		go work(q, &finished)
		synctest.Wait()
		q.Add("a")
		go func() {
			time.Sleep(time.Second / 2)
			q.Add("late")
		}()
		q.Drain()
		if finished != 2 {
			t.Fatalf("a was added again while the worker had it. Drain returned after %d of 2 runs.\n"+
				"An Add during Drain comes too late.", finished)
		}
	})
}

func Test3DrainWaitsForAKeyThatNobodyHasTaken(t *testing.T) {
	run(t, func(t *testing.T) {
		q, finished := New[string](), 0
		q.Add("a")
		go func() {
			time.Sleep(time.Second) // The worker is late.
			work(q, &finished)
		}()
		q.Drain()
		if finished != 1 {
			t.Fatal("A key was waiting and no worker had taken it yet. Drain returned at once.")
		}
	})
}

func Test4EveryDrainReturns(t *testing.T) {
	run(t, func(t *testing.T) {
		q, finished := New[string](), 0
		var returned atomic.Int32
		q.Add("a")
		q.Add("b")
		go work(q, &finished)
		synctest.Wait()
		for range 3 {
			go func() {
				q.Drain()
				returned.Add(1)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := returned.Load(); n != 3 {
			defer q.changed.Broadcast() // frees the others
			t.Fatalf("Three parts of the program called Drain. All keys are done, and %d of the calls returned.\n"+
				"How many does Signal wake?", n)
		}
	})
}

func Test5AnEmptyQueueIsDrained(t *testing.T) {
	run(t, func(t *testing.T) {
		q := New[string]()
		q.Drain()
		if _, ok := q.Get(); ok {
			t.Error("Get returned a key of an empty queue.")
		}

		q = New[string]()
		ended := false
		go func() {
			q.Get()
			ended = true
		}()
		synctest.Wait()
		q.Drain()
		if synctest.Wait(); !ended {
			defer q.changed.Broadcast()
			t.Fatal("A worker waited in Get when Drain was called. Nothing comes any more, and it has not ended.")
		}
	})
}
