package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestHandlerPanicIsContained: after a panic the handler goes on with the next object, and syncs.
//
// Source: reliability of the field, k/k#129024: in client-go v0.37.2 the handler never syncs.
func TestHandlerPanicIsContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		s.put("b")
		inf := NewSharedInformer[object](s, Options[object]{})
		var told []string
		bad, _ := inf.AddHandler(Handler[object]{OnAdd: func(o object, _ bool) {
			told = append(told, o.Name)
			if o.Name == "a" {
				panic("no a, please")
			}
		}}, HandlerOptions{})
		var others atomic.Int64
		if _, err := inf.AddHandler(Handler[object]{OnAdd: func(object, bool) { others.Add(1) }},
			HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		defer start(t, inf.Run)()
		synctest.Wait()
		if !slices.Equal(told, []string{"a", "b"}) || others.Load() != 2 || !bad.HasSynced() {
			t.Errorf("told %v, others %d, synced %v", told, others.Load(), bad.HasSynced())
		}
		if n := bad.Stats().Panics; n != 1 {
			t.Errorf("%d panics counted", n)
		}
	})
}

// TestRemoveHandlerDeliversOrReports: a removal that waits delivers everything. One that does not wait returns what was
// dropped.
//
// Source: RemoveEventHandler of client-go v0.37.2 discards pending notifications silently.
func TestRemoveHandlerDeliversOrReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		for i := range 50 {
			s.put(fmt.Sprint("pod", i))
		}
		inf := NewSharedInformer[object](s, Options[object]{})
		defer start(t, inf.Run)()
		if err := inf.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		slow := func() (Registration, *atomic.Int64) {
			var told atomic.Int64
			reg, err := inf.AddHandler(
				Handler[object]{OnAdd: func(object, bool) { time.Sleep(time.Second); told.Add(1) }},
				HandlerOptions{Name: "slow"},
			)
			if err != nil {
				t.Fatal(err)
			}
			return reg, &told
		}

		patient, told := slow()
		if err := inf.RemoveHandler(t.Context(), patient); err != nil || told.Load() != 50 {
			t.Errorf("told %d: %v", told.Load(), err)
		}
		if err := inf.RemoveHandler(t.Context(), patient); err != nil {
			t.Errorf("second removal: %v", err)
		}

		hasty, told := slow()
		ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
		defer cancel()
		err := inf.RemoveHandler(ctx, hasty)
		var dropped *UndeliveredError
		if !errors.As(err, &dropped) || dropped.Count != 39 || !dropped.Running ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("removal: %v", err)
		}
		time.Sleep(time.Minute)
		if told.Load() != 11 {
			t.Errorf("told %d; a call began after the removal", told.Load())
		}
	})
}

// TestHandlerRemovesItself: a handler that removes itself from within a call must not wait for itself.
func TestHandlerRemovesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		inf := NewSharedInformer[object](s, Options[object]{})
		done, cancel := context.WithCancel(t.Context())
		cancel()
		var reg Registration
		var told int
		reg, _ = inf.AddHandler(Handler[object]{OnAdd: func(object, bool) {
			told++
			_ = inf.RemoveHandler(done, reg) // The error reports that this call is running.
		}}, HandlerOptions{})
		defer start(t, inf.Run)()
		synctest.Wait()
		s.put("b")
		synctest.Wait()
		if told != 1 || len(inf.Stats().Handlers) != 0 {
			t.Errorf("told %d, handlers %v", told, inf.Stats().Handlers)
		}
	})
}

// TestSlowHandlerIsBounded: a handler that never returns holds two states per object, whatever the number of changes.
func TestSlowHandlerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		inf := NewSharedInformer[object](s, Options[object]{})
		gate := make(chan struct{})
		reg, _ := inf.AddHandler(Handler[object]{OnAdd: func(object, bool) { <-gate }}, HandlerOptions{})
		defer start(t, inf.Run)()
		s.put("first")
		synctest.Wait()
		for i := range 20_000 {
			s.put(fmt.Sprint("pod", i%10))
			if i%100 == 0 {
				s.put("short-lived")
				s.remove("short-lived")
			}
			if i%50 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if st := reg.Stats(); st.Pending > 10*64 || st.Merged < 15_000 {
			t.Errorf("%+v", st)
		}
		close(gate)
		synctest.Wait()
		if st := reg.Stats(); st.Pending != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestHandlerIsRunningFromTheFirstMoment: Stats shows a call from its first moment on.
func TestHandlerIsRunningFromTheFirstMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		inf := NewSharedInformer[object](s, Options[object]{})
		release := make(chan struct{})
		r, err := inf.AddHandler(Handler[object]{OnAdd: func(object, bool) { <-release }}, HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer start(t, inf.Run)()
		synctest.Wait()
		if got := r.Stats(); got.Pending != 0 || got.Running <= 0 {
			t.Errorf("during the call: %+v", got)
		}
		close(release)
		synctest.Wait()
		if got := r.Stats(); got.Running != 0 {
			t.Errorf("after the call: %+v", got)
		}
	})
}

// TestHandlersOfOneName: metrics distinguish handlers by name.
func TestHandlersOfOneName(t *testing.T) {
	inf := NewSharedInformer[object](newServer(), Options[object]{})
	var names []string
	for range 3 {
		r := must(inf.AddHandler(Handler[object]{}, HandlerOptions{Name: "web"}))
		names = append(names, r.Name())
	}
	if want := []string{"web", "web-2", "web-3"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}
