package pebble_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/flyball-dev/flyball/localapi/storage"
)

func testWatch(_ *testing.T, f fixture) {
	x := f.create("a/x", "1")
	fromStart, fromX := f.watch("a/", storage.FirstRevision), f.watch("a/", x)
	f.create("ab/x", "1")
	x2 := f.put("a/x", "2", x)
	gone := f.remove("a/x", x2)
	first := fmt.Sprintf("%d a/x=1", x)
	rest := []string{fmt.Sprintf("%d a/x=2", x2), fmt.Sprintf("%d a/x=-", gone)}
	f.equal("from the start", f.poll(fromStart), append([]string{first}, rest...))
	f.equal("from x", f.poll(fromX), rest)
	f.equal("nothing twice", f.poll(fromX), []string{})
	f.create("a/z", "1")
	events, revision, err := fromX.Poll()
	f.fails("poll", err, nil)
	f.equal("later", describe(events), []string{fmt.Sprintf("%d a/z=1", gone+1)})
	f.equal("revision of the poll", revision, gone+1)
	_, err = f.Watch(f.ctx, "a/", gone+9)
	f.fails("watch from the future", err, storage.ErrFuture)
}

func testWatchNext(t *testing.T, f fixture) {
	w := f.watch("a/", storage.FirstRevision)
	got := make(chan []storage.Event, 1)
	go func() {
		events, _, err := w.Next(f.ctx)
		if err != nil {
			t.Errorf("next: %v", err)
		}
		got <- events
	}()
	f.create("b/x", "not this one")
	f.create("a/x", "1")
	f.equal("next", describe(<-got), []string{"3 a/x=1"})
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, _, err := w.Next(ctx)
	f.fails("next with a cancelled context", err, context.Canceled)
}

func testWatchPrevious(_ *testing.T, f fixture) {
	w := f.watch("", storage.FirstRevision)
	x := f.create("a/x", "1")
	x2 := f.put("a/x", "2", x)
	f.remove("a/x", x2)
	f.create("a/x", "3")
	events, _, err := w.Poll()
	f.fails("poll", err, nil)
	var previous []string
	for _, e := range events {
		previous = append(previous, fmt.Sprintf("%d %s", e.Previous.Revision, e.Previous.Value))
	}
	f.equal("previous states", previous, []string{"0 ", fmt.Sprintf("%d 1", x), fmt.Sprintf("%d 2", x2), "0 "})
}
