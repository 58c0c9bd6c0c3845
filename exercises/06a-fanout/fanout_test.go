package fanout

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

func state(name, uid string, version int) *kube.Object {
	return &kube.Object{Name: name, UID: uid, Version: version}
}

func change(before, after *kube.Object) kube.Change { return kube.Change{Old: before, New: after} }

// text formats changes as +a@1/u1, a@1/u1>a@2/u1 and -a@2/u1.
func text(changes ...kube.Change) string {
	var all []string
	of := func(o *kube.Object) string { return fmt.Sprintf("%s/%s", o, o.UID) }
	for _, c := range changes {
		switch {
		case c.Old == nil && c.New == nil:
			all = append(all, "nothing")
		case c.Old == nil:
			all = append(all, "+"+of(c.New))
		case c.New == nil:
			all = append(all, "-"+of(c.Old))
		default:
			all = append(all, of(c.Old)+">"+of(c.New))
		}
	}
	return strings.Join(all, " ")
}

func wantMerged(t *testing.T, why, want string, changes ...kube.Change) {
	t.Helper()
	before := text(changes...)
	defer func() {
		if after := text(changes...); after != before {
			t.Fatalf("Merge got [%s], and made [%s] of it. The slice belongs to the caller.", before, after)
		}
	}()
	if got := text(Merge(changes)...); got != want {
		t.Fatalf("Merge of [%s] returned [%s], it should be [%s].\n%s", before, got, want, why)
	}
}

var (
	a1, a2, a3 = state("a", "u1", 1), state("a", "u1", 2), state("a", "u1", 3)
	a4, b5     = state("a", "u2", 4), state("b", "u3", 5)
)

func Test1UpdatesOfAnObjectBecomeOne(t *testing.T) {
	wantMerged(t, "The handler knows version 1, and needs the newest.", "a@1/u1>a@3/u1", change(a1, a2), change(a2, a3))
	wantMerged(t, "The handler does not know a. For it, a is new.", "+a@3/u1", change(nil, a1), change(a1, a2),
		change(a2, a3))
	wantMerged(t, "The handler knows version 1, and a is gone.", "-a@1/u1", change(a1, a2), change(a2, nil))
}

func Test2WhatCameAndWentIsDropped(t *testing.T) {
	wantMerged(t, "The handler never heard of a, and need not.", "", change(nil, a1), change(a1, a2), change(a2, nil))
}

func Test3AnotherObjectOfTheNameIsAnother(t *testing.T) {
	wantMerged(t, "Another object has the name now. Whoever holds something for the first must hear that it is gone.",
		"-a@1/u1 +a@4/u2", change(a1, a2), change(a2, nil), change(nil, a4))
	wantMerged(t, "The handler never heard of the first one.", "+a@4/u2", change(nil, a1), change(a1, nil),
		change(nil, a4))
}

func Test4TheOrderIsThatOfTheFirstChanges(t *testing.T) {
	wantMerged(t, "a changed first.", "a@1/u1>a@3/u1 +b@5/u3", change(a1, a2), change(nil, b5), change(a2, a3))
	other := &kube.Object{Namespace: "shop", Name: "a", UID: "u4", Version: 6}
	wantMerged(t, "The second a is in another namespace: its key is shop/a.", "a@1/u1>a@3/u1 +shop/a@6/u4",
		change(a1, a2), change(nil, other), change(a2, a3))
}

// run runs a test in virtual time.
func run(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// A record has the changes that a handler was called with.
type record struct {
	mu   sync.Mutex
	told []string
}

func (r *record) add(c kube.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, text(c))
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.told, " ")
}

func Test5EveryHandlerHearsAllInOrder(t *testing.T) {
	run(t, func(t *testing.T) {
		f := New(100)
		defer f.Stop()
		var first, second, late record
		f.Add(first.add)
		f.Add(second.add)
		f.Publish(change(nil, a1), change(a1, a2))
		f.Publish(change(a2, a3))
		synctest.Wait()
		f.Add(late.add)
		f.Publish(change(nil, b5))
		synctest.Wait()
		for _, r := range []*record{&first, &second} {
			if want := "+a@1/u1 a@1/u1>a@2/u1 a@2/u1>a@3/u1 +b@5/u3"; r.String() != want {
				t.Fatalf("A handler was told [%s], it should be [%s].", r, want)
			}
		}
		if late.String() != "+b@5/u3" {
			t.Fatalf("A handler that was added late was told [%s], it should be [+b@5/u3].", &late)
		}
	})
}

func Test6NobodyWaitsForASlowHandler(t *testing.T) {
	run(t, func(t *testing.T) {
		f := New(100)
		var quick record
		slow := f.Add(func(kube.Change) { time.Sleep(time.Hour) })
		f.Add(quick.add)
		began := time.Now()
		f.Publish(change(nil, a1))
		f.Publish(change(a1, a2))
		f.Publish(change(a2, a3))
		if took := time.Since(began); took > 0 {
			t.Errorf("Publish took %v, because a handler is slow. The cache waits for Publish.", took)
		}
		synctest.Wait()
		if want := "+a@1/u1 a@1/u1>a@2/u1 a@2/u1>a@3/u1"; quick.String() != want {
			t.Errorf("One handler is slow, and the other one was told [%s]. It should be [%s].", &quick, want)
		}
		f.Publish(change(nil, b5))
		time.Sleep(time.Second)
		if told := quick.String(); !strings.HasSuffix(told, "+b@5/u3") {
			t.Errorf("One handler is busy for an hour. Then +b@5/u3 was published, and a second later the other one "+
				"was told [%s].", told)
		}
		if n := slow.Waiting(); n != 3 {
			t.Errorf("The slow handler is being told the first of four changes, and Waiting returned %d.", n)
		}
		f.Stop()
	})
}

func Test7OneCallAtATime(t *testing.T) {
	run(t, func(t *testing.T) {
		f := New(100)
		defer f.Stop()
		var mu sync.Mutex
		calls, most, total := 0, 0, 0
		f.Add(func(kube.Change) {
			mu.Lock()
			calls++
			total++
			most = max(most, calls)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			calls--
			mu.Unlock()
		})
		for range 5 {
			f.Publish(change(nil, a1), change(a1, nil))
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if most != 1 || total != 10 {
			t.Fatalf("Ten changes were published. There were %d calls, and %d of them at once. It should be one at a "+
				"time, or the order is lost.", total, most)
		}
	})
}

func Test8AHandlerThatLagsHoldsLittle(t *testing.T) {
	run(t, func(t *testing.T) {
		const objects, changes, limit = 10, 100_000, 50
		f := New(limit)
		var mu sync.Mutex
		last := map[string]int{}
		release := make(chan struct{})
		h := f.Add(func(c kube.Change) {
			<-release
			mu.Lock()
			defer mu.Unlock()
			key, told := c.New.Key(), 0
			if c.Old != nil {
				told = c.Old.Version
			}
			if told != last[key] {
				t.Errorf("The handler was told version %d of %s last, and now an update of version %d.",
					last[key], key, told)
			}
			last[key] = c.New.Version
		})
		states := map[string]*kube.Object{}
		most, published := 0, make([]kube.Change, 1) // the same slice each time
		for n := range changes {
			key := fmt.Sprint("o", n%objects)
			now := state(key, "u", n+1)
			published[0] = change(states[key], now)
			f.Publish(published...)
			states[key] = now
			most = max(most, h.Waiting())
		}
		if most > limit+1 {
			t.Errorf("The handler is stuck, and %d changes of %d objects wait for it. At most %d should, the limit.",
				most, objects, limit)
		}
		close(release)
		synctest.Wait()
		mu.Lock()
		for key, now := range states {
			if last[key] != now.Version {
				t.Errorf("In the end %s is at version %d, and the handler was told version %d.",
					key, now.Version, last[key])
			}
		}
		mu.Unlock()
		f.Stop()
	})
}

func Test9StopWaitsForTheCallThatRuns(t *testing.T) {
	run(t, func(t *testing.T) {
		f := New(100)
		var told record
		f.Add(func(c kube.Change) {
			time.Sleep(time.Second)
			told.add(c)
		})
		f.Add(func(kube.Change) {})
		f.Publish(change(nil, a1), change(a1, a2))
		synctest.Wait()
		began := time.Now()
		f.Stop()
		if took := time.Since(began); took != time.Second {
			t.Errorf("A call runs for a second, and Stop returned after %v.\nWhat the handler uses may be closed now.",
				took)
		}
		f.Publish(change(a2, a3))
		time.Sleep(time.Minute)
		if told.String() != "+a@1/u1" {
			t.Errorf("The handler was told [%s], it should be [+a@1/u1]: no call begins after Stop.", &told)
		}
	})
}
