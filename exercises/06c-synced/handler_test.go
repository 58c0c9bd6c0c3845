package handler

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// run runs a handler in virtual time. It panics on objects that begin with "bad", and takes a second for each.
func run(t *testing.T, test func(t *testing.T, h *Handler, told func() []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var objects []string
		h := New(func(object string) {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			objects = append(objects, object)
			if len(object) >= 3 && object[:3] == "bad" {
				panic("this function does not like " + object)
			}
		})
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { h.Run(stop) })
		test(t, h, func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(objects)
		})
		close(stop)
		running.Wait()
	})
}

func Test1APanicDoesNotKeepItFromSyncing(t *testing.T) {
	run(t, func(t *testing.T, h *Handler, told func() []string) {
		for _, object := range []string{"a", "bad", "c"} {
			h.Add(object, true)
		}
		h.Listed()
		time.Sleep(time.Minute)
		if got := told(); !slices.Equal(got, []string{"a", "bad", "c"}) {
			t.Errorf("The handler was told %q, it should be [a bad c].", got)
		}
		if !h.HasSynced() {
			t.Error("The first list had three objects, and the handler was told all three; it panicked on one. " +
				"HasSynced returned false, and always will.\n" +
				"The controller that waits for it does nothing, and says nothing.")
		}
	})
}

func Test2ItHasNotSyncedDuringTheLastCall(t *testing.T) {
	run(t, func(t *testing.T, h *Handler, _ func() []string) {
		h.Add("bad", false) // not in the first list
		h.Add("a", true)
		h.Add("b", true)
		h.Listed()
		time.Sleep(2500 * time.Millisecond)
		if h.HasSynced() {
			t.Error("The handler is being told the last of two objects, and HasSynced returned true.\n" +
				"The call must have returned: what it does is what the controller waits for.")
		}
		time.Sleep(time.Second)
		if !h.HasSynced() {
			t.Error("The handler was told both objects, and HasSynced returned false.")
		}
	})
}

func Test3ItHasNotSyncedDuringACallThatWillPanic(t *testing.T) {
	run(t, func(t *testing.T, h *Handler, _ func() []string) {
		h.Add("bad", true)
		h.Listed()
		time.Sleep(500 * time.Millisecond)
		if h.HasSynced() {
			t.Error("The call has not ended yet, and HasSynced returned true.")
		}
		time.Sleep(time.Second)
		if !h.HasSynced() || h.Panics() != 1 {
			t.Errorf("The call has panicked. HasSynced returned %v, it should be true. Panics returned %d, it should "+
				"be 1.", h.HasSynced(), h.Panics())
		}
	})
}

func Test4ItHasNotSyncedBeforeTheListIsComplete(t *testing.T) {
	run(t, func(t *testing.T, h *Handler, _ func() []string) {
		h.Add("a", true)
		time.Sleep(time.Minute)
		if h.HasSynced() {
			t.Error("The first list is not complete: more may come. HasSynced returned true.")
		}
		h.Listed()
		if !h.HasSynced() {
			t.Error("The list is complete, and the handler was told all of it. HasSynced returned false.")
		}
	})
}

func Test5LaterObjectsDoNotCount(t *testing.T) {
	run(t, func(t *testing.T, h *Handler, _ func() []string) {
		h.Add("a", true)
		h.Listed()
		time.Sleep(time.Minute)
		h.Add("bad later", false)
		h.Add("later", false)
		if !h.HasSynced() {
			t.Error("It had synced, and a later object made HasSynced false again.")
		}
		time.Sleep(time.Minute)
		if !h.HasSynced() {
			t.Error("It had synced, and later objects made HasSynced false again.")
		}
	})
}
