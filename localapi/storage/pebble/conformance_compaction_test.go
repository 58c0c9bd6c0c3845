package pebble_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/flyball-dev/flyball/localapi/storage"
)

func testCompaction(_ *testing.T, f fixture) {
	x := f.create("a/x", "1")
	late := f.watch("a/", storage.FirstRevision)
	x2 := f.put("a/x", "2", x)
	x3 := f.put("a/x", "3", x2)
	f.fails("compact", f.Compact(f.ctx, x2), nil)
	f.fails("compact again", f.Compact(f.ctx, x), nil)
	_, compacted := f.Revision()
	f.equal("compacted revision", compacted, x2)
	_, err := f.List(f.ctx, "a/", storage.ListOptions{Revision: x})
	f.fails("list before the compaction", err, storage.ErrCompacted)
	_, err = f.Watch(f.ctx, "a/", x)
	f.fails("watch from before the compaction", err, storage.ErrCompacted)
	_, _, err = late.Poll()
	f.fails("poll of a watch that the compaction overtook", err, storage.ErrCompacted)
	f.equal("list at the compaction", f.list("a/", storage.ListOptions{Revision: x2}), []string{"a/x=2"})
	f.equal("watch from the compaction", f.poll(f.watch("a/", x2)), []string{fmt.Sprintf("%d a/x=3", x3)})
	f.fails("compact the future", f.Compact(f.ctx, x3+1), storage.ErrFuture)
}

func testCompactionKeepsState(_ *testing.T, f fixture) {
	var want []string
	for i := range 50 {
		key := fmt.Sprintf("a/%02d", i)
		revision := f.create(key, "old")
		switch i % 3 {
		case 0:
			f.remove(key, revision)
		case 1:
			f.put(key, "new", revision)
			want = append(want, key+"=new")
		default:
			want = append(want, key+"=old")
		}
		if i%10 == 0 {
			current, _ := f.Revision()
			f.fails("compact", f.Compact(f.ctx, current), nil)
		}
	}
	current, _ := f.Revision()
	f.fails("compact", f.Compact(f.ctx, current), nil)
	f.equal("state", f.list("a/", storage.ListOptions{}), want)
	f.create("a/00", "again")
	r, err := f.Get(f.ctx, "a/00")
	f.fails("get", err, nil)
	f.equal("a key that was compacted away", string(r.Value), "again")
}

// testCompactionBesideReaders compacts while others list at the present and at a past revision. A list must be either
// complete or rejected.
func testCompactionBesideReaders(t *testing.T, f fixture) {
	const keys, rounds = 20, 30
	revisions := map[string]int64{}
	for i := range keys {
		key := fmt.Sprintf("a/%02d", i)
		revisions[key] = f.create(key, "0")
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				checkWhole(t, f, keys)
			}
		})
	}
	for n := range rounds {
		for i := range keys {
			key := fmt.Sprintf("a/%02d", i)
			revisions[key] = f.put(key, fmt.Sprint(n), revisions[key])
		}
		current, _ := f.Revision()
		f.fails("compact", f.Compact(f.ctx, current), nil)
	}
	close(done)
	readers.Wait()
}

func checkWhole(t *testing.T, f fixture, keys int) {
	now, err := f.List(f.ctx, "a/", storage.ListOptions{})
	if err != nil || len(now.Records) != keys {
		t.Errorf("list now: %d of %d records, %v", len(now.Records), keys, err)
	}
	past, err := f.List(f.ctx, "a/", storage.ListOptions{Revision: now.Revision})
	switch {
	case errors.Is(err, storage.ErrCompacted):
	case err != nil || len(past.Records) != keys:
		t.Errorf("list at %d: %d of %d records, %v", now.Revision, len(past.Records), keys, err)
	default:
		for i, r := range past.Records {
			if r.Revision != now.Records[i].Revision {
				t.Errorf("list at %d has %s at %d, the list now had it at %d", now.Revision, r.Key, r.Revision,
					now.Records[i].Revision)
			}
		}
	}
	if _, err := f.Get(f.ctx, "a/00"); err != nil {
		t.Errorf("get: %v", err)
	}
}
