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

func addWithPriority(q *workqueue.Queue[string], key string, priority int) {
	q.AddWith(key, workqueue.AddOptions{Priority: &priority})
}

// Source: controller-runtime v0.25.2 pkg/controller/priorityqueue: higher first, first in first out among equals, the highest of
// several counts.
func TestPriorityOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{Order: workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{})})
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
			Group: namespace,
			Within: func() workqueue.Order[string] {
				return workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{})
			},
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
