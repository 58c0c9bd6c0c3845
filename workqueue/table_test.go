package workqueue

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/flyball-dev/flyball/workqueue/internal/ring"
)

// TestTableMatchesMap makes entries used and idle at random, and compares with a map of those in use.
func TestTableMatchesMap(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		table, inUse := newTable[string](), map[string]uint32{}
		for range 4_000 {
			table.keep = int(seed) // few, so that eviction and shifting are what is tested
			key := fmt.Sprint(random.IntN(10 + int(seed)*20))
			if id, used := inUse[key]; used {
				table.at(id).dirty = false
				table.retire(table.at(id))
				delete(inUse, key)
			} else {
				e := table.obtain(key, table.hash(key))
				e.dirty = true
				inUse[key] = e.id
			}
			if table.used()-table.idle != len(inUse) || table.idle > table.keep {
				t.Fatalf("%d used, %d idle; want %d in use", table.used(), table.idle, len(inUse))
			}
		}
		for key, id := range inUse {
			if e := table.find(key); e != table.at(id).entry || e.key != key {
				t.Fatalf("seed %d: key %s is not found", seed, key)
			}
		}
	}
}

// After a storm of keys, the queue gives their memory back.
func TestStormLeavesNoMemoryBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[int]{})
		defer q.ShutDown()
		const storm = 100_000
		for key := range storm {
			q.AddAfter(key, time.Second)
		}
		q.Add(-1)
		for want := range storm + 1 {
			if want == 1 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			item, err := q.Get(t.Context())
			if err != nil || item.Key != want-1 {
				t.Fatalf("Get: got %d, %v, want %d", item.Key, err, want-1)
			}
			q.Done(item.Key)
		}
		if q.entries.used() > keepFirst || len(q.entries.index) > 4*keepFirst ||
			len(q.entries.blocks) > 4*keepFirst/blockSize {
			t.Errorf("%d entries, %d slots, %d blocks are left", q.entries.used(), len(q.entries.index),
				len(q.entries.blocks))
		}
		if heap := cap(q.delayed.heap.All()); q.ready.lanes.normal.Cap() > ring.Keep || heap > ring.Keep {
			t.Errorf("a ring of %d and a heap of %d are left", q.ready.lanes.normal.Cap(), heap)
		}
	})
}

// TestIdleKeysAreKeptForThoseThatComeBack: keys that come and go in turn find their entries again after a few rounds,
// up to a bound, and keys that do not come back let the number of idle entries fall again.
func TestIdleKeysAreKeptForThoseThatComeBack(t *testing.T) {
	q := New(Options[int]{})
	defer q.ShutDown()
	turn := func(from, to int) {
		t.Helper()
		for key := from; key < to; key++ {
			q.Add(key)
			if item, err := q.Get(t.Context()); err != nil || item.Key != key {
				t.Fatalf("Get: got %d, %v, want %d", item.Key, err, key)
			}
			q.Done(key)
			if q.entries.idle > q.entries.keep || q.entries.keep > keepMost {
				t.Fatalf("%d idle entries, of which %d may be kept", q.entries.idle, q.entries.keep)
			}
		}
	}
	for _, n := range []int{keepLeast, 4 * keepLeast, keepMost, keepMost + keepMost/4} {
		for range 12 {
			turn(0, n)
		}
		if q.entries.idle != n && n <= keepMost {
			t.Errorf("of %d keys in turn, %d entries are kept", n, q.entries.idle)
		}
	}
	for range 3 {
		turn(0, 10*keepMost) // Too many to remember that they come back.
	}
	if q.entries.idle > keepMost/2 {
		t.Errorf("of %d keys in turn, %d entries are kept", 10*keepMost, q.entries.idle)
	}
	turn(-10*keepMost, 0)
	const few = 16 // Once in a thousand runs, a new key looks like one that comes back.
	if q.entries.used() > keepLeast+few || q.entries.keep > keepLeast+few {
		t.Errorf("after as many keys that do not come back, %d entries are kept", q.entries.used())
	}
}

// Source: client-go v0.37.2 util/workqueue/queue_test.go, TestGarbageCollection.
func TestPointerKeysAreNotKeptAlive(t *testing.T) {
	q := New(Options[*[64]byte]{})
	key := new([64]byte)
	alive := weak.Make(key)
	q.Add(key)
	item, err := q.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q.Done(item.Key)
	key, item = nil, Item[*[64]byte]{}
	for range 10 {
		runtime.GC()
	}
	if alive.Value() != nil {
		t.Error("the queue keeps a key alive that is done")
	}
	runtime.KeepAlive(q)
}

func TestPlainKeys(t *testing.T) {
	type request struct{ Namespace, Name string }
	if table := newTable[request](); table.keep != keepFirst {
		t.Error("keys of strings are not kept")
	}
	for name, keep := range map[string]int{
		"any":    newTable[any]().keep,
		"array":  newTable[[2]*int]().keep,
		"struct": newTable[struct{ p *int }]().keep,
		"chan":   newTable[chan int]().keep,
	} {
		if keep != 0 {
			t.Errorf("keys of kind %s are kept", name)
		}
	}
}

// TestTimesNeedNoRecord: a backlog of a queue that measures time costs 8 bytes a key more, not a record of each run.
func TestTimesNeedNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[int]{QueueingTime: true})
		defer q.ShutDown()
		for key := range 1_000 {
			q.Add(key)
			time.Sleep(time.Millisecond)
		}
		for id := range q.ready.all() {
			if e := q.entries.at(id); e.run != nil {
				t.Fatalf("key %d has a record", e.key)
			}
		}
		for key := range 1_000 {
			item, err := q.Get(t.Context())
			if want := time.Duration(1_000-key) * time.Millisecond; err != nil || item.Queued != want {
				t.Fatalf("key %d was queued for %v, %v; want %v", item.Key, item.Queued, err, want)
			}
			q.Done(item.Key)
		}
	})
}
