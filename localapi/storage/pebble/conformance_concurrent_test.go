package pebble_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// testListThenWatch rebuilds the state from a list and the watch that continues it, while others write.
func testListThenWatch(t *testing.T, f fixture) {
	const writers, writes = 4, 200
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			key := fmt.Sprintf("a/%d", i)
			revision := storage.NoRevision
			for n := range writes {
				var err error
				if n%7 == 6 {
					_, err = f.Delete(f.ctx, key, revision)
					revision = storage.NoRevision
				} else {
					revision, err = f.Put(f.ctx, storage.Write{Key: key, Value: fmt.Append(nil, n), Expected: revision})
				}
				if err != nil {
					t.Errorf("write %d of %s: %v", n, key, err)
					return
				}
			}
		})
	}
	page, err := f.List(f.ctx, "a/", storage.ListOptions{})
	f.fails("list", err, nil)
	state := map[string]string{}
	for _, r := range page.Records {
		state[r.Key] = string(r.Value)
	}
	w := f.watch("a/", page.Revision)
	last := page.Revision
	wg.Wait()
	events, _, err := w.Poll()
	f.fails("poll", err, nil)
	for _, e := range events {
		if e.Revision <= last {
			t.Fatalf("event at revision %d after one at %d", e.Revision, last)
		}
		last = e.Revision
		if delete(state, e.Key); !e.Deleted {
			state[e.Key] = string(e.Value)
		}
	}
	want := map[string]string{}
	for _, s := range f.list("a/", storage.ListOptions{}) {
		key, value, _ := strings.Cut(s, "=")
		want[key] = value
	}
	f.equal("state by list and watch", state, want)
}

func testConcurrentUpdates(t *testing.T, f fixture) {
	const writers, increments = 50, 100
	f.create("a/counter", "0")
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < increments; {
				r, err := f.Get(f.ctx, "a/counter")
				if err != nil {
					t.Errorf("get: %v", err)
					return
				}
				var n int
				if _, err := fmt.Sscan(string(r.Value), &n); err != nil {
					t.Errorf("counter is %q: %v", r.Value, err)
					return
				}
				_, err = f.Put(f.ctx, storage.Write{Key: r.Key, Value: fmt.Append(nil, n+1), Expected: r.Revision})
				switch {
				case err == nil:
					done++
				case !errors.Is(err, storage.ErrConflict):
					t.Errorf("put: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	f.equal("counter", f.list("a/counter", storage.ListOptions{}),
		[]string{fmt.Sprintf("a/counter=%d", writers*increments)})
}

func testSlowWatch(_ *testing.T, f fixture) {
	slow := f.watch("a/", storage.FirstRevision)
	fast := f.watch("a/", storage.FirstRevision)
	seen := 0
	for i := range 3_000 {
		f.create(fmt.Sprintf("a/%05d", i), "v")
		seen += len(f.poll(fast))
	}
	f.equal("events seen by the fast watch", seen, 3_000)
	f.equal("events waiting for the slow watch", len(f.poll(slow)), 3_000)
}

func testClosed(_ *testing.T, f fixture) {
	f.create("a/x", "1")
	w := f.watch("a/", storage.FirstRevision+1)
	f.fails("close", f.Close(), nil)
	_, err := f.Get(f.ctx, "a/x")
	f.fails("get", err, storage.ErrClosed)
	_, err = f.List(f.ctx, "a/", storage.ListOptions{})
	f.fails("list", err, storage.ErrClosed)
	_, err = f.Put(f.ctx, storage.Write{Key: "a/y"})
	f.fails("put", err, storage.ErrClosed)
	_, err = f.Watch(f.ctx, "a/", 0)
	f.fails("watch", err, storage.ErrClosed)
	_, _, err = w.Next(f.ctx)
	f.fails("next", err, storage.ErrClosed)
	f.fails("close again", f.Close(), nil)
}

// testClosedUnderWriters closes a store while others write and wait. Every write that was answered with success must be
// stored.
func testClosedUnderWriters(t *testing.T, f fixture) {
	var wg sync.WaitGroup
	acknowledged := make([]int64, 8)
	started := make(chan struct{}, len(acknowledged))
	for i := range acknowledged {
		wg.Go(func() {
			key := fmt.Sprintf("a/%d", i)
			for n := 0; ; n++ {
				revision, err := f.Put(f.ctx,
					storage.Write{Key: key, Value: fmt.Append(nil, n), Expected: acknowledged[i]})
				if n == 0 {
					started <- struct{}{}
				}
				if err != nil {
					if !errors.Is(err, storage.ErrClosed) {
						t.Errorf("put: %v", err)
					}
					return
				}
				acknowledged[i] = revision
			}
		})
	}
	w := f.watch("b/", storage.FirstRevision)
	wg.Go(func() {
		if _, _, err := w.Next(f.ctx); !errors.Is(err, storage.ErrClosed) {
			t.Errorf("next: %v, want %v", err, storage.ErrClosed)
		}
	})
	for range acknowledged {
		<-started
	}
	f.fails("close", f.Close(), nil)
	wg.Wait()
	if f.backend.Reopen == nil {
		return
	}
	f = f.reopened()
	for i, revision := range acknowledged {
		r, err := f.Get(f.ctx, fmt.Sprintf("a/%d", i))
		f.fails("get", err, nil)
		f.equal(r.Key, r.Revision, revision)
	}
}
