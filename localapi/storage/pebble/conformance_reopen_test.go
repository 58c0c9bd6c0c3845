package pebble_test

import (
	"fmt"
	"testing"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// testReopened closes and opens a store: state, revisions and history continue.
func testReopened(_ *testing.T, f fixture) {
	x := f.create("a/x", "1")
	x2 := f.put("a/x", "2", x)
	y := f.create("a/y", "1")
	gone := f.remove("a/y", y)
	f = f.reopened()
	current, compacted := f.Revision()
	f.equal("revisions", []int64{current, compacted}, []int64{gone, 0})
	f.equal("state", f.list("a/", storage.ListOptions{}), []string{"a/x=2"})
	f.equal("state at a past revision", f.list("a/", storage.ListOptions{Revision: y}), []string{"a/x=2", "a/y=1"})
	w := f.watch("a/", x)
	events, _, err := w.Poll()
	f.fails("poll", err, nil)
	f.equal("history", describe(events), []string{
		fmt.Sprintf("%d a/x=2", x2), fmt.Sprintf("%d a/y=1", y), fmt.Sprintf("%d a/y=-", gone),
	})
	f.equal("previous state in the history", string(events[0].Previous.Value), "1")
	f.equal("the next write", f.put("a/x", "3", x2), gone+1)
	f.equal("the watch goes on", f.poll(w), []string{fmt.Sprintf("%d a/x=3", gone+1)})
	_, err = f.Put(f.ctx, storage.Write{Key: "a/x", Value: []byte("stale"), Expected: x2})
	f.fails("update from before", err, storage.ErrConflict)
}

func testReopenedAfterCompaction(_ *testing.T, f fixture) {
	x := f.create("a/x", "1")
	x2 := f.put("a/x", "2", x)
	gone := f.remove("a/x", x2)
	f.create("a/y", "1")
	f.fails("compact", f.Compact(f.ctx, gone), nil)
	f = f.reopened()
	current, compacted := f.Revision()
	f.equal("revisions", []int64{current, compacted}, []int64{gone + 1, gone})
	_, err := f.Watch(f.ctx, "a/", x)
	f.fails("watch from before the compaction", err, storage.ErrCompacted)
	f.equal("history", f.poll(f.watch("a/", gone)), []string{fmt.Sprintf("%d a/y=1", gone+1)})
	f.fails("compact all", f.Compact(f.ctx, gone+1), nil)
	f = f.reopened()
	current, compacted = f.Revision()
	f.equal("revisions without any history", []int64{current, compacted}, []int64{gone + 1, gone + 1})
	f.equal("the next write", f.create("a/x", "again"), gone+2)
	f.equal("state", f.list("a/", storage.ListOptions{}), []string{"a/x=again", "a/y=1"})
}
