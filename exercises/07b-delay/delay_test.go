package delay

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// record has the keys that were added, and when.
type record struct {
	mu    sync.Mutex
	began time.Time
	added []string
}

func (r *record) add(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.added = append(r.added, fmt.Sprintf("%s at %v", key, time.Since(r.began)))
}

// check waits for d and compares the keys that were added since the beginning.
func (r *record) check(t *testing.T, d time.Duration, why string, want ...string) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.added, want) {
		t.Fatalf("Added so far: [%s].\nIt should be: [%s].\n%s",
			strings.Join(r.added, ", "), strings.Join(want, ", "), why)
	}
}

// run runs a test in virtual time.
func run(t *testing.T, test func(t *testing.T, d *Delays[string], r *record)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &record{began: time.Now()}
		test(t, New(r.add), r)
	})
}

func Test1AKeyIsAddedWhenItsTimeHasCome(t *testing.T) {
	run(t, func(t *testing.T, d *Delays[string], r *record) {
		d.AddAfter("a", time.Minute)
		r.check(t, 59*time.Second, "The minute is not over.")
		r.check(t, time.Second, "A minute has passed.", "a at 1m0s")
		if n := d.Len(); n != 0 {
			t.Errorf("a was added, and Len is %d. It should be 0.", n)
		}
		d.AddAfter("a", time.Minute)
		r.check(t, time.Minute, "It was added before, and now it waits again.", "a at 1m0s", "a at 2m0s")
	})
}

func Test2NoDelayIsAnAdd(t *testing.T) {
	run(t, func(t *testing.T, d *Delays[string], r *record) {
		d.AddAfter("a", 0)
		d.AddAfter("b", -time.Second)
		r.check(t, 0, "A wait of zero or less is over already.", "a at 0s", "b at 0s")
		d.AddAfter("c", time.Minute)
		d.AddAfter("c", 0)
		r.check(t, time.Hour, "c had a delay when it was added. The delay stays: somebody wants a look then.",
			"a at 0s", "b at 0s", "c at 0s", "c at 1m0s")
	})
}

func Test3DeadlinesDecideTheOrder(t *testing.T) {
	run(t, func(t *testing.T, d *Delays[string], r *record) {
		d.AddAfter("c", 3*time.Second)
		d.AddAfter("a", time.Second)
		d.AddAfter("b", 2*time.Second)
		if n := d.Len(); n != 3 {
			t.Errorf("Three keys wait, and Len is %d.", n)
		}
		r.check(t, 3*time.Second, "a came after c, but its deadline is earlier: the timer must be set anew.",
			"a at 1s", "b at 2s", "c at 3s")
	})
}

func Test4EqualDeadlinesKeepTheirOrder(t *testing.T) {
	run(t, func(t *testing.T, d *Delays[string], r *record) {
		var want []string
		for i := range 50 {
			key := fmt.Sprintf("%02d", i)
			d.AddAfter(key, time.Second)
			want = append(want, key+" at 1s")
		}
		r.check(t, time.Second, "A heap does not keep the order of equal elements: count the calls, "+
			"and compare the counts.", want...)
	})
	run(t, func(t *testing.T, d *Delays[string], r *record) {
		d.AddAfter("b", time.Minute)
		d.AddAfter("a", time.Second)
		d.AddAfter("b", time.Second)
		r.check(t, time.Minute, "The call that gave b its present deadline came after that of a.", "a at 1s", "b at 1s")
	})
}

func Test5TheEarliestDelayOfAKeyCounts(t *testing.T) {
	run(t, func(t *testing.T, d *Delays[string], r *record) {
		d.AddAfter("later", time.Minute)
		d.AddAfter("later", time.Hour)
		d.AddAfter("sooner", time.Hour)
		d.AddAfter("sooner", time.Second)
		if n := d.Len(); n != 2 {
			t.Errorf("Two keys wait, with two delays each, and Len is %d. It should be 2.", n)
		}
		r.check(t, 2*time.Hour, "Each delay asks for a look no later than its deadline. One look at the earliest "+
			"is enough.", "sooner at 1s", "later at 1m0s")
	})
	run(t, func(t *testing.T, d *Delays[string], r *record) {
		for _, wait := range []int{5, 4, 3, 2, 1} {
			d.AddAfter(fmt.Sprint(wait), time.Duration(wait)*time.Minute)
		}
		d.AddAfter("5", time.Second)
		d.AddAfter("2", 2*time.Second)
		r.check(t, time.Hour, "Two keys got an earlier deadline. If the place of a key in the heap is known, it must "+
			"be right after each Swap, Push and Pop.", "5 at 1s", "2 at 2s", "1 at 1m0s", "3 at 3m0s", "4 at 4m0s")
	})
}

func Test6AMillisecondBehindAThousandOthers(t *testing.T) {
	run(t, func(t *testing.T, d *Delays[string], r *record) {
		before := runtime.NumGoroutine()
		for i := range 1000 {
			d.AddAfter(fmt.Sprint("key-", i), time.Hour)
		}
		if n := runtime.NumGoroutine() - before; n > 1 {
			t.Fatalf("A thousand keys wait, and there are %d goroutines more. One timer is enough: "+
				"it is set to the earliest deadline.", n)
		}
		d.AddAfter("first", time.Millisecond)
		r.check(t, time.Millisecond, "The timer was set to an hour, and an earlier deadline has come.", "first at 1ms")
	})
}

func Test7AddMayCallAddAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{began: time.Now()}
		var d *Delays[string]
		d = New(func(key string) {
			r.add(key)
			if key == "again" {
				d.AddAfter("and again", time.Second)
			}
		})
		d.AddAfter("again", time.Second)
		r.check(t, 2*time.Second, "add called AddAfter. Is the mutex locked while add is called?",
			"again at 1s", "and again at 2s")
		d.AddAfter("again", 0)
		r.check(t, time.Second, "add called AddAfter. Is the mutex locked while add is called?",
			"again at 1s", "and again at 2s", "again at 2s", "and again at 3s")
	})
}

func Test8NothingIsAddedAfterStop(t *testing.T) {
	run(t, func(t *testing.T, d *Delays[string], r *record) {
		d.AddAfter("a", time.Second)
		d.AddAfter("b", time.Minute)
		r.check(t, time.Second, "", "a at 1s")
		d.Stop()
		d.AddAfter("c", 0)
		d.AddAfter("d", time.Second)
		r.check(t, time.Hour, "Stop was called before the others were due.", "a at 1s")
		if n := d.Len(); n != 0 {
			t.Errorf("After Stop, Len is %d. It should be 0.", n)
		}
		d.Stop() // A second Stop does nothing.
	})
}

func Test9StopWaitsForTheAddThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, wait := range []time.Duration{time.Second, 0} {
			running := false
			d := New(func(string) {
				running = true
				time.Sleep(time.Minute) // a slow add
				running = false
			})
			go d.AddAfter("a", wait)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			d.Stop()
			if running {
				t.Fatalf("Two seconds after AddAfter(a, %v), Stop returned while add was running. The caller may "+
					"close what add writes to.", wait)
			}
			synctest.Wait()
		}
	})
}
