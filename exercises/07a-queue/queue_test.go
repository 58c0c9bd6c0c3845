package queue

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// get is Get for tests: it fails instead of waiting forever. Call it inside a bubble of synctest.
func get(t *testing.T, q *Queue[string]) string {
	t.Helper()
	var key string
	var ok bool
	returned := make(chan struct{})
	go func() {
		key, ok = q.Get()
		close(returned)
	}()
	synctest.Wait()
	select {
	case <-returned:
	default:
		t.Error("Get waits, but a key should be there.")
		free(q)
		t.FailNow()
	}
	if !ok {
		t.Fatal("Get returned false, but a key should be there. It returns false only when the queue is shut down " +
			"and no key waits.")
	}
	return key
}

// free ends a Get that waits, if ShutDown is written already.
func free(q *Queue[string]) {
	defer func() { _ = recover() }()
	q.ShutDown()
}

// waits reports whether Get has nothing to hand out. It leaves a Get behind, which takes the next key.
func waits(q *Queue[string]) bool {
	returned := make(chan struct{})
	go func() {
		q.Get()
		close(returned)
	}()
	synctest.Wait()
	select {
	case <-returned:
		return false
	default:
		return true
	}
}

func Test1KeysComeOutInTheOrderOfTheirAdds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		for _, key := range []string{"a", "b", "c"} {
			q.Add(key)
		}
		if n := q.Len(); n != 3 {
			t.Errorf("After Add of a, b and c, Len is %d. It should be 3.", n)
		}
		for _, want := range []string{"a", "b", "c"} {
			if got := get(t, q); got != want {
				t.Fatalf("Get returned %q, it should be %q: the key that has waited longest comes first.\n"+
					"Otherwise a key could wait for ever behind newer ones.", got, want)
			}
		}
	})
}

func Test2AKeyThatWaitsIsNotAddedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		for range 1000 {
			q.Add("a")
		}
		q.Add("b")
		if n := q.Len(); n != 2 {
			t.Fatalf("After a thousand Adds of a and one of b, Len is %d. It should be 2.\n"+
				"A key says only \"look at this object\". One look is enough for a thousand changes.", n)
		}
	})
}

func Test3GetWaitsForAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		var got string
		go func() {
			time.Sleep(time.Hour)
			q.Add("late")
		}()
		go func() { got, _ = q.Get() }()
		synctest.Wait()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got != "late" {
			defer free(q)
			t.Fatalf("A worker waited in Get, then \"late\" was added, and Get returned %q.\n"+
				"Does Add wake a worker that waits?", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		q, got := New[int](), make(chan int, 20)
		for range cap(got) {
			go func() {
				key, _ := q.Get()
				got <- key
			}()
		}
		synctest.Wait()
		for key := range cap(got) {
			q.Add(key)
		}
		synctest.Wait()
		q.ShutDown() // frees those that still wait
		if n := q.Len(); n != 0 {
			t.Fatalf("Twenty workers waited, twenty keys were added, and %d of the keys still wait.\n"+
				"Each Add has to wake a worker: the key before it may not have been taken yet.", n)
		}
	})
}

func Test4AKeyIsNotGivenToTwoWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		q.Add("a")
		get(t, q)
		q.Add("a")
		if n := q.Len(); n != 0 {
			t.Errorf("A worker has a, and a was added again. Len is %d, it should be 0: a waits for Done.", n)
		}
		if !waits(q) {
			t.Fatal("A worker has a, a was added again, and Get gave a to a second worker.\n" +
				"Two workers on one key write over each other, and the older one may write last.")
		}
		q.Add("b") // for the Get that waits
	})
}

func Test5AnAddDuringTheWorkIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		q.Add("a")
		get(t, q)
		for range 3 {
			q.Add("a")
		}
		q.Done("a")
		if n := q.Len(); n != 1 {
			t.Fatalf("A worker had a, a was added three times meanwhile, then the worker called Done. Len is %d, "+
				"it should be 1.\nThe worker may have read the object before the change, so somebody must look again, "+
				"once.", n)
		}
		get(t, q)
		q.Add("b")
		q.Add("a")
		q.Done("a")
		if got := get(t, q); got != "b" {
			t.Fatalf("b was added, then a, which a worker had, and then the worker called Done. Get returned %q, it "+
				"should be b.\nIf a went to the front, a key that changes all the time would hold up all others.", got)
		}
		q.Done("b")
		get(t, q)
		q.Done("a")
		if n := q.Len(); n != 0 {
			t.Errorf("Nobody added a since it was handed out, and after Done Len is %d. It should be 0.", n)
		}
		q.Add("a")
		if n := q.Len(); n != 1 {
			t.Errorf("No worker has a any more, and it is added. Len is %d, it should be 1: a is not in processing.", n)
		}
		get(t, q)
		q.Add("a")
		var second string
		go func() { second, _ = q.Get() }()
		synctest.Wait()
		q.Done("a")
		if synctest.Wait(); second != "a" {
			defer free(q)
			t.Fatal("A worker had a, a was added again, and a second worker waits in Get, also after Done.\n" +
				"Done has to wake it as Add does.")
		}
	})
}

func Test6AStrayDoneDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		q.Add("a")
		q.Done("a")
		q.Done("b")
		if n := q.Len(); n != 1 {
			t.Fatalf("a was added, and Done was called for it although no worker had it. Len is %d, it should be 1.\n"+
				"If such a Done queues the key again, two workers get it at once.", n)
		}
	})
}

func Test7ShutDownHandsOutWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		q.Add("a")
		q.Add("b")
		get(t, q)
		q.Add("a")
		q.ShutDown()
		q.Add("c")
		if got := get(t, q); got != "b" {
			t.Fatalf("b waited when ShutDown was called. Get returned %q, it should be b.", got)
		}
		q.Done("a")
		if got := get(t, q); got != "a" {
			t.Fatalf("a was added again before ShutDown, while a worker had it. After Done, Get returned %q, "+
				"it should be a.", got)
		}
		q.Add("a")
		q.Done("a")
		if key, ok := q.Get(); ok {
			t.Fatalf("The queue is shut down and empty, and Get returned %q. It should return false: "+
				"c and the last a were added too late.", key)
		}
	})
}

func Test8ShutDownEndsTheWorkersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		var workers sync.WaitGroup
		ended := make(chan bool, 3)
		for range 3 {
			workers.Go(func() {
				_, ok := q.Get()
				ended <- !ok
			})
		}
		synctest.Wait()
		q.ShutDown()
		synctest.Wait()
		if n := len(ended); n != 3 {
			t.Fatalf("Three workers waited in Get when ShutDown was called, and %d of them returned. "+
				"Signal wakes one, Broadcast all.", n)
		}
		workers.Wait()
	})
}

func Test9ManyWorkersReachEveryGoal(t *testing.T) {
	const keys, workers, changes = 20, 8, 200
	q := New[string]()
	var mu sync.Mutex
	gets, goal, have, holders := 0, map[string]int{}, map[string]int{}, map[string]int{}
	var pool sync.WaitGroup
	for range workers {
		pool.Go(func() {
			for {
				key, ok := q.Get()
				if !ok {
					return
				}
				mu.Lock()
				if gets++; gets > keys*changes {
					mu.Unlock()
					t.Error("More keys were handed out than there were Adds.")
					return
				}
				if holders[key]++; holders[key] > 1 {
					t.Errorf("%s was given to two workers at once.", key)
				}
				want := goal[key]
				mu.Unlock()
				time.Sleep(time.Microsecond)
				mu.Lock()
				have[key] = want
				holders[key]--
				mu.Unlock()
				q.Done(key)
			}
		})
	}
	for n := 1; n <= changes; n++ {
		for k := range keys {
			key := fmt.Sprint("key-", k)
			mu.Lock()
			goal[key] = n
			mu.Unlock()
			q.Add(key)
		}
	}
	q.ShutDown()
	pool.Wait()
	for key, want := range goal {
		if have[key] != want {
			t.Fatalf("%s is at %d, its goal is %d: an Add was lost.", key, have[key], want)
		}
	}
}
