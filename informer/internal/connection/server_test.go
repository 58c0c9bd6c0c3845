package connection

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// interruptedOf joins the server and returns a function that reports whether it was interrupted since the last call.
func interruptedOf(h *Server) func() bool {
	i := newInterrupter()
	h.join(i)
	return i.TakeInterrupt
}

// TestHistoryOfAnotherStorage: the first report of an API group is believed. If no other group confirms it, further
// reports concern only that group for an hour. Otherwise they would cause a storm of lists.
func TestHistoryOfAnotherStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewServer(nil)
		interrupted := interruptedOf(h)
		ctx := t.Context()
		if !h.Ended(ctx, "widgets.example.com", "9", "1") || !interrupted() || h.Current() != 1 {
			t.Fatal("the first report is not believed")
		}
		h.Confirm("gadgets.example.com") // The same group, and so the same storage.
		for range 5 {
			if h.Ended(ctx, "widgets.example.com", "9", "1") || interrupted() || h.Current() != 1 {
				t.Fatal("a report is believed that nobody confirmed before")
			}
		}
		if !h.Ended(ctx, "pods", "9", "1") || !interrupted() {
			t.Error("another group is not believed")
		}
		h.Confirm("deployments.apps")
		if !h.Ended(ctx, "pods", "9", "1") || !interrupted() {
			t.Error("a group is not believed whose report was confirmed")
		}
		time.Sleep(trustAgain)
		if !h.Ended(ctx, "pods", "9", "1") {
			t.Error("a group is not believed an hour later")
		}
	})
}

// TestHistoriesOfTwoStorages: two API groups with storages of their own do not make each other believed again.
func TestHistoriesOfTwoStorages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewServer(nil)
		for range 5 {
			h.Ended(t.Context(), "widgets.example.com", "9", "1")
			h.Ended(t.Context(), "nodes.metrics.k8s.io", "9", "1")
		}
		if n := h.Current(); n != 2 {
			t.Errorf("%d reports are believed, want one of each group", n)
		}
	})
}

// TestIdentityIsAskedOncePerOutage: the server is asked for its identity at the start and once after each outage,
// however many informers noticed it. If it refuses or does not answer it counts as the same server.
func TestIdentityIsAskedOncePerOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		asked, identity, fails := 0, "a", error(nil)
		h := NewServer(func(context.Context) (string, error) {
			asked++
			time.Sleep(time.Second)
			return identity, fails
		})
		interrupted := interruptedOf(h)
		outage := func(what string, wantAsked int, wantTold bool) {
			t.Helper()
			asked = 0
			for range 10 {
				h.Lost()
			}
			done := make(chan struct{}) // Each of the ten sends one; it is never closed.
			for range 10 {
				go func() { h.Verify(ctx); done <- struct{}{} }()
			}
			for range 10 {
				<-done
			}
			if got := interrupted(); asked != wantAsked || got != wantTold {
				t.Errorf("%s: asked %d times, told %v", what, asked, got)
			}
		}
		outage("at the start", 1, false)
		outage("the same server", 1, false)
		identity = "b"
		outage("another server", 1, true)
		fails = apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "kube-system", errors.New("no"))
		outage("one that refuses", 1, false)
		fails = errors.New("connection refused")
		outage("one that is away again", 10, false)
		fails, identity = nil, absent
		outage("one that has no namespaces yet", 1, true)
		identity = "c"
		outage("and has them now", 1, false)
	})
}
