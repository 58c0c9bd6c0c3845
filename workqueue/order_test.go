package workqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

func addWithPriority(q *workqueue.Queue[string], key string, priority int) {
	q.AddWith(key, workqueue.AddOptions{Priority: &priority})
}

// Source: controller-runtime v0.25.2 pkg/controller/priorityqueue: higher first, first in first out among equals, the
// highest of several counts.
func TestPriorityOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(
			workqueue.Options[string]{Order: workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{})},
		)
		addWithPriority(q, "low", -100)
		addWithPriority(q, "normal-1", 0)
		addWithPriority(q, "raised", -100)
		q.Add("normal-2")
		addWithPriority(q, "high", 10)
		addWithPriority(q, "raised", 20)
		addWithPriority(q, "high", -5)
		wantKeys(t, q, "raised", "high", "normal-1", "normal-2", "low")
	})
}

// Under steady load of higher priority, a key is handed out when it has waited its stated bound. controller-runtime's
// priority queue never hands it out.
func TestPriorityOrderAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const age = 10 * time.Millisecond
		q := workqueue.New(workqueue.Options[string]{
			Order: workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{Age: age}),
		})
		began := time.Now()
		addWithPriority(q, "low", -100)
		for i := 0; ; i++ {
			q.Add(fmt.Sprint("normal-", i))
			q.Add(fmt.Sprint("more-", i))
			key := get(t, q).Key
			q.Done(key)
			waited := time.Since(began)
			if key == "low" {
				if waited < 100*age {
					t.Errorf("handed out after %v, before its bound", waited)
				}
				return
			}
			// At the bound, keys that came earlier than it are still waiting: two come for each that goes.
			if waited > 3*100*age {
				t.Fatalf("still waiting after %v", waited)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func TestPriorityOrderKeepsExtremePrioritiesInOrder(t *testing.T) {
	q := workqueue.New(workqueue.Options[string]{
		Order: workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{Age: time.Hour}),
	})
	addWithPriority(q, "least", -1<<63)
	addWithPriority(q, "none", 0)
	addWithPriority(q, "most", 1<<63-1)
	wantKeys(t, q, "most", "none", "least")
}

func namespace(key string) string {
	group, _, _ := strings.Cut(key, "/")
	return group
}

func TestFairOrderTakesGroupsInTurn(t *testing.T) {
	q := workqueue.New(workqueue.Options[string]{
		Order: workqueue.NewFairOrder(workqueue.FairOptions[string]{Group: namespace}),
	})
	for i := range 3 {
		q.Add(fmt.Sprint("storm/", i))
	}
	q.Add("calm/0")
	q.Add("other/0")
	q.Add("calm/1")
	wantKeys(t, q, "storm/0", "calm/0", "other/0", "storm/1", "calm/1", "storm/2")
	q.Add("calm/0")
	wantKeys(t, q, "calm/0")
}

func TestFairOrderWithPrioritiesWithin(t *testing.T) {
	q := workqueue.New(workqueue.Options[string]{
		Order: workqueue.NewFairOrder(workqueue.FairOptions[string]{
			Group:  namespace,
			Within: &workqueue.PriorityOptions{},
		}),
	})
	for _, key := range []string{"a/0", "a/1", "b/0", "b/1"} {
		q.Add(key)
	}
	addWithPriority(q, "b/1", 5)
	err := drainNow(t, q)
	if want := "drain work queue: context canceled: 4 queued (a/0, a/1, b/1, b/0), 0 processing"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	wantKeys(t, q, "a/0", "b/1", "a/1", "b/0")
}

func TestWithoutGroupAllKeysAreOneGroup(t *testing.T) {
	q := workqueue.New(workqueue.Options[string]{Order: workqueue.NewFairOrder(workqueue.FairOptions[string]{})})
	want := []string{"b/0", "a/0", "b/1"}
	for _, key := range want {
		q.Add(key)
	}
	if got := keys(t, q); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// fairly makes a queue with limits.
func fairly(o workqueue.FairOptions[string]) *workqueue.Queue[string] {
	o.Group = namespace
	return workqueue.New(workqueue.Options[string]{Order: workqueue.NewFairOrder(o)})
}

// take gets n keys, without Done.
func take(t *testing.T, q *workqueue.Queue[string], n int) (keys []string) {
	t.Helper()
	for range n {
		keys = append(keys, get(t, q).Key)
	}
	return keys
}

// wantNothing checks that no key is handed out, although keys are ready.
func wantNothing(t *testing.T, q *workqueue.Queue[string]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if item, err := q.Get(ctx); err == nil {
		t.Errorf("%s was handed out", item.Key)
	}
}

// A group at its limit holds back its own keys only.
func TestFairOrderLimitsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fairly(workqueue.FairOptions[string]{GroupLimit: 2})
		for i := range 4 {
			q.Add(fmt.Sprint("storm/", i))
		}
		q.Add("calm/0")
		if got := take(t, q, 3); !slices.Equal(got, []string{"storm/0", "calm/0", "storm/1"}) {
			t.Errorf("got %q", got)
		}
		wantNothing(t, q)
		if q.Len() != 2 {
			t.Errorf("%d are ready, want those held back, too", q.Len())
		}
		woken := make(chan string)
		go func() { woken <- get(t, q).Key }()
		synctest.Wait()
		q.Done("calm/0") // does not make room for storm/2
		synctest.Wait()
		q.Done("storm/1")
		if key := <-woken; key != "storm/2" {
			t.Errorf("got %s", key)
		}
		q.Add("storm/0") // again, while it is processed
		q.Done("storm/0")
		q.Done("storm/2")
		wantKeys(t, q, "storm/3", "storm/0")
	})
}

// When a slot is released, a key of another group can take it, but not one of the same group.
func TestFairOrderReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fairly(workqueue.FairOptions[string]{GroupLimit: 1, Limit: 1})
		for _, key := range []string{"dead/0", "dead/1", "a/0", "b/0"} {
			q.Add(key)
		}
		if got := take(t, q, 1); got[0] != "dead/0" {
			t.Errorf("got %q", got)
		}
		wantNothing(t, q)
		woken := make(chan string)
		go func() { woken <- get(t, q).Key }()
		synctest.Wait()
		q.Release("dead/0")
		q.Release("dead/0")
		if key := <-woken; key != "a/0" {
			t.Errorf("got %s", key)
		}
		wantNothing(t, q)
		q.Done("a/0")
		if got := take(t, q, 1); got[0] != "b/0" {
			t.Errorf("got %q", got)
		}
		q.Done("dead/0") // its slot was released already
		wantNothing(t, q)
		q.Done("b/0")
		wantKeys(t, q, "dead/1")
	})
}

// After a shutdown, keys that are held back are still handed out. Then the workers that wait get ErrShutDown.
func TestShutDownHandsOutWhatIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fairly(workqueue.FairOptions[string]{GroupLimit: 1})
		for i := range 5 {
			q.Add(fmt.Sprint("a/", i))
		}
		var mu sync.Mutex
		var got []string
		var workers sync.WaitGroup
		for range 3 {
			workers.Go(func() {
				for {
					item, err := q.Get(t.Context())
					if err != nil {
						return
					}
					mu.Lock()
					got = append(got, item.Key)
					mu.Unlock()
					time.Sleep(time.Second)
					q.Done(item.Key)
				}
			})
		}
		synctest.Wait()
		if err := q.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		workers.Wait()
		if want := []string{"a/0", "a/1", "a/2", "a/3", "a/4"}; !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
	})
}

// With limits, each key is still handed out once per add, no limit is exceeded, and no key is held back without need.
func TestFairOrderModel(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		groupLimit, limit := random.IntN(3), random.IntN(4)
		q := fairly(workqueue.FairOptions[string]{GroupLimit: groupLimit, Limit: limit})
		ready, running, released := map[string]bool{}, map[string]bool{}, map[string]bool{}
		count := func(group string) (n int) {
			for key := range running {
				if group == "" && !released[key] || namespace(key) == group {
					n++
				}
			}
			return n
		}
		open := func() bool {
			if limit > 0 && count("") >= limit {
				return false
			}
			for key := range ready {
				if !running[key] && (groupLimit == 0 || count(namespace(key)) < groupLimit) {
					return true
				}
			}
			return false
		}
		for range 300 {
			key := fmt.Sprintf("%c/%d", 'a'+rune(random.IntN(3)), random.IntN(4))
			switch random.IntN(5) {
			case 0, 1:
				q.Add(key)
				ready[key] = true
			case 2:
				if open() {
					got := get(t, q).Key
					if !ready[got] || running[got] || groupLimit > 0 && count(namespace(got)) >= groupLimit {
						t.Fatalf("seed %d: %s was handed out", seed, got)
					}
					delete(ready, got)
					running[got] = true
				} else if q.CanPop() {
					t.Fatalf("seed %d: a key would be handed out, with %v ready and %v worked on", seed, ready, running)
				}
			case 3:
				if running[key] {
					q.Done(key)
					delete(running, key)
					delete(released, key)
				}
			case 4:
				if running[key] && (limit > 0 || groupLimit > 0) {
					q.Release(key)
					released[key] = true
				}
			}
		}
	}
}

// A user's Group is called without the lock, so it can call the queue.
func TestGroupIsCalledWithoutTheLock(t *testing.T) {
	var q *workqueue.Queue[string]
	calls := 0
	q = workqueue.New(workqueue.Options[string]{Order: workqueue.NewFairOrder(workqueue.FairOptions[string]{
		GroupLimit: 1,
		Group: func(key string) string {
			calls++
			q.Len() // deadlocks if the lock is held
			return namespace(key)
		},
	})})
	q.AddAfter("a/0", time.Hour)
	for _, key := range []string{"a/0", "a/1", "b/0"} {
		q.Add(key)
		addWithPriority(q, key, 3)
	}
	wantKeys(t, q, "a/0", "b/0", "a/1")
	q.CancelDelays(q.Delayed()...)
	if q.Len() != 0 || calls != 7 {
		t.Errorf("%d keys are left after %d calls of Group", q.Len(), calls)
	}
}

// A key that runs while a scheduled add is pending still has its group when the delay expires.
func TestScheduledAddKeepsItsGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fairly(workqueue.FairOptions[string]{GroupLimit: 1})
		defer q.ShutDown()
		q.AddAfter("a/0", time.Minute)
		q.Add("a/0")
		wantKeys(t, q, "a/0")
		q.Add("a/1")
		take(t, q, 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		wantNothing(t, q) // a/0 is held back: its group is at the limit
		q.Done("a/1")
		wantKeys(t, q, "a/0")
	})
}
