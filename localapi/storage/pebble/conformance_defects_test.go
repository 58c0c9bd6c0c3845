package pebble_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// defects are the cases of the known defects (see testBackend) that concern the store itself.
var defects = []struct {
	number int
	name   string
	test   func(*testing.T, fixture)
}{
	{2, "ListReturnsData", testListReturnsData},
	{3, "ListIsRecursive", testListIsRecursive},
	{8, "ErrorsAreDistinct", testErrorsAreDistinct},
	{9, "WatchStartsAtItsRevision", testListThenWatch},
	{10, "WatchCostsNoGoroutine", testWatchCostsNoGoroutine},
	{11, "SlowWatchIsDropped", testSlowWatchIsDropped},
	{12, "PrefixEndsAtTheSlash", testPrefixEndsAtTheSlash},
	{13, "EventsInOrder", testEventsInOrder},
	{14, "NoLostUpdates", testNoLostUpdates},
	{15, "RevisionOutlivesTheProcess", testRevisionOutlivesTheProcess},
	{16, "TenantsShareAStore", testTenantsShareAStore},
	{17, "OneProcessAtATime", testOneProcessAtATime},
}

func testListReturnsData(_ *testing.T, f fixture) {
	want := []string{}
	for i := range 3 {
		value := strings.Repeat(fmt.Sprint(i), 5000)
		f.create(fmt.Sprintf("a/%d", i), value)
		want = append(want, fmt.Sprintf("a/%d=%s", i, value))
	}
	f.equal("values", f.list("a/", storage.ListOptions{}), want)
}

func testListIsRecursive(_ *testing.T, f fixture) {
	for _, ns := range []string{"n1", "n2"} {
		f.create(storage.Key{Tenant: "t", Resource: "pods", Namespace: ns, Name: "p"}.String(), ns)
	}
	pods := storage.Key{Tenant: "t", Resource: "pods"}
	f.equal("all namespaces", f.list(pods.Prefix(), storage.ListOptions{}),
		[]string{"t/core/pods/n1/p=n1", "t/core/pods/n2/p=n2"})
	pods.Namespace = "n2"
	f.equal("one namespace", f.list(pods.Prefix(), storage.ListOptions{}), []string{"t/core/pods/n2/p=n2"})
}

// testErrorsAreDistinct: a key named like an error's text is not that error.
func testErrorsAreDistinct(_ *testing.T, f fixture) {
	key := "a/" + storage.ErrNotFound.Error()
	revision := f.create(key, "1")
	_, err := f.Put(f.ctx, storage.Write{Key: key, Value: []byte("2"), Expected: revision + 5})
	f.fails("conflict", err, storage.ErrConflict)
	if errors.Is(err, storage.ErrNotFound) {
		f.t.Errorf("%v is ErrNotFound, too", err)
	}
	_, err = f.Get(f.ctx, "a/revision conflict")
	f.fails("missing", err, storage.ErrNotFound)
}

func testWatchCostsNoGoroutine(t *testing.T, f fixture) {
	cancelled, cancel := context.WithCancel(f.ctx)
	cancel()
	f.create("a/x", "1")
	before := runtime.NumGoroutine()
	for range 100 {
		w := f.watch("a/", storage.FirstRevision+1)
		for range 10 {
			f.poll(w)
			_, _, err := w.Next(cancelled)
			f.fails("next", err, context.Canceled)
		}
	}
	if now := runtime.NumGoroutine(); now >= before+100 {
		t.Errorf("%d goroutines after 100 watches, %d before", now, before)
	}
}

// testSlowWatchIsDropped: a watcher that does not read loses its place when the history is compacted, and nobody waits
// for it.
func testSlowWatchIsDropped(_ *testing.T, f fixture) {
	slow := f.watch("a/", storage.FirstRevision)
	fast := f.watch("a/", storage.FirstRevision)
	seen := 0
	for i := range 300 {
		revision := f.create(fmt.Sprintf("a/%04d", i), "v")
		seen += len(f.poll(fast))
		if i%50 == 49 {
			f.fails("compact", f.Compact(f.ctx, revision-10), nil)
		}
	}
	f.equal("events seen by the fast watch", seen, 300)
	_, _, err := slow.Poll()
	f.fails("poll of the slow watch", err, storage.ErrCompacted)
	_, _, err = slow.Next(f.ctx)
	f.fails("next of the slow watch", err, storage.ErrCompacted)
}

func testPrefixEndsAtTheSlash(_ *testing.T, f fixture) {
	w := f.watch(storage.TenantPrefix("a"), storage.FirstRevision)
	a, ab := storage.Key{Tenant: "a", Resource: "pods", Name: "x"},
		storage.Key{Tenant: "ab", Resource: "pods", Name: "x"}
	f.create(ab.String(), "1")
	f.equal("watch of a", f.poll(w), []string{})
	f.create(a.String(), "1")
	f.equal("watch of a", f.poll(w), []string{"3 a/core/pods/x=1"})
	f.equal("list of a", f.list(storage.TenantPrefix("a"), storage.ListOptions{}), []string{"a/core/pods/x=1"})
	pods := storage.Key{Tenant: "a", Resource: "pod"}
	f.equal("list of a resource whose name begins alike", f.list(pods.Prefix(), storage.ListOptions{}), []string{})
}

// testEventsInOrder: watchers that wait while several write see each revision once, and in order.
func testEventsInOrder(t *testing.T, f fixture) {
	const writers, writes, watchers = 4, 50, 3
	var wg sync.WaitGroup
	for range watchers {
		w := f.watch("", storage.FirstRevision)
		wg.Go(func() {
			last := storage.FirstRevision
			for last < storage.FirstRevision+writers*writes {
				events, revision, err := w.Next(f.ctx)
				if err != nil {
					t.Errorf("next: %v", err)
					return
				}
				for _, e := range events {
					if e.Revision != last+1 {
						t.Errorf("revision %d after %d", e.Revision, last)
					}
					last = e.Revision
				}
				if revision < last {
					t.Errorf("known up to %d, but got an event at %d", revision, last)
				}
			}
		})
	}
	for i := range writers {
		wg.Go(func() {
			expected := storage.NoRevision
			for n := range writes {
				var err error
				if expected, err = f.Put(f.ctx, storage.Write{
					Key: fmt.Sprintf("a/%d", i), Value: fmt.Append(nil, n),
					Expected: expected,
				}); err != nil {
					t.Errorf("put: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// testNoLostUpdates: of many writers that create one key, or update it from one revision, one succeeds. The others find
// its work.
func testNoLostUpdates(t *testing.T, f fixture) {
	const writers, rounds = 8, 25
	expected := storage.NoRevision
	for round := range rounds {
		var wg sync.WaitGroup
		won := make([]int64, writers)
		for i := range writers {
			wg.Go(func() {
				revision, err := f.Put(f.ctx, storage.Write{Key: "a/x", Value: fmt.Append(nil, i), Expected: expected})
				if err == nil {
					won[i] = revision
					return
				}
				r, getErr := f.Get(f.ctx, "a/x")
				if !errors.Is(err, storage.ErrConflict) || getErr != nil || r.Revision <= expected {
					t.Errorf("refused with %v, and then %+v, %v is read", err, r, getErr)
				}
			})
		}
		wg.Wait()
		winner, winners := -1, 0
		for i, revision := range won {
			if revision != 0 {
				winner, winners = i, winners+1
			}
		}
		f.equal(fmt.Sprintf("winners of round %d", round), winners, 1)
		r, err := f.Get(f.ctx, "a/x")
		f.fails("get", err, nil)
		f.equal("the winner's state", []any{string(r.Value), r.Revision}, []any{fmt.Sprint(winner), won[winner]})
		expected = r.Revision
	}
	current, _ := f.Revision()
	f.equal("revisions taken", current, storage.FirstRevision+rounds)
}

func testRevisionOutlivesTheProcess(_ *testing.T, f fixture) {
	last := storage.FirstRevision
	for round := range 4 {
		for i := range 3 {
			revision := f.create(fmt.Sprintf("a/%d-%d", round, i), "v")
			f.equal("revision", revision, last+1)
			last = revision
		}
		f = f.reopened()
		current, _ := f.Revision()
		f.equal("revision after reopening", current, last)
	}
}

// testTenantsShareAStore: a tenant is a part of keys and of nothing else.
func testTenantsShareAStore(_ *testing.T, f fixture) {
	key := func(tenant string) string {
		return storage.Key{Tenant: tenant, Resource: "configmaps", Namespace: "ns", Name: "x"}.String()
	}
	w := f.watch(storage.TenantPrefix("t1"), storage.FirstRevision)
	one := f.create(key("t1"), "1")
	two := f.create(key("t2"), "2")
	f.equal("t1", f.list(storage.TenantPrefix("t1"), storage.ListOptions{}), []string{key("t1") + "=1"})
	f.remove(key("t1"), one)
	f.equal("t2 after the removal in t1", f.list(storage.TenantPrefix("t2"), storage.ListOptions{}),
		[]string{key("t2") + "=2"})
	f.put(key("t2"), "3", two)
	f.equal("watch of t1", f.poll(w),
		[]string{fmt.Sprintf("%d %s=1", one, key("t1")), fmt.Sprintf("%d %s=-", two+1, key("t1"))})
	page, err := f.List(f.ctx, storage.TenantPrefix("t1"), storage.ListOptions{Limit: 1})
	f.fails("list", err, nil)
	f.equal("count of t1", int64(len(page.Records))+page.Remaining, int64(0))
}

func testOneProcessAtATime(t *testing.T, f fixture) {
	if f.backend.Second == nil {
		t.Skip("the stores of this backend belong to their process")
	}
	f.create("a/x", "1")
	if err := f.backend.Second(t, f.Storage); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("opened twice: %v, want an error that says that it is in use", err)
	}
	f.create("a/y", "the first is not disturbed")
}
