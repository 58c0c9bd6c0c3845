package stale

import (
	"errors"
	"slices"
	"testing"
)

// A world has a server, a cache of it, and the controller. The cache is updated when the test calls follow.
type world struct {
	server *Server
	cached Endpoints
	*Controller
}

func newWorld() *world {
	w := &world{server: &Server{stored: Endpoints{Version: 1}}}
	w.Controller = &Controller{Server: w.server, Cached: func() Endpoints { return w.cached }}
	w.follow()
	return w
}

// follow brings the cache up to date.
func (w *world) follow() { w.cached = w.server.stored }

// sync brings the cache up to date, calls Sync, and brings the cache up to date again.
func (w *world) sync(t *testing.T, addresses ...string) {
	t.Helper()
	w.follow()
	if err := w.Sync(addresses); err != nil {
		t.Fatalf("Sync with %v returns %q. The cache is up to date: it has version %d, and so has the server.\n"+
			"However often the queue tries again, the answer will be the same: nobody else writes these Endpoints.",
			addresses, err, w.cached.Version)
	}
	w.follow()
}

func (w *world) want(t *testing.T, addresses ...string) {
	t.Helper()
	if got := w.server.stored.Addresses; !slices.Equal(got, addresses) {
		t.Fatalf("The server has the addresses %v, want %v.", got, addresses)
	}
}

func Test1ManyPods(t *testing.T) {
	w := newWorld()
	w.sync(t, "a", "b", "c", "d")
	w.want(t, "a", "b", "c")
	w.sync(t, "a", "b", "c", "d", "e") // Pod e does not fit in.
	w.want(t, "a", "b", "c")
	w.sync(t, "b", "c", "d", "e") // Pod a is gone.
	w.want(t, "b", "c", "d")
}

func Test2ALateCacheIsWaitedFor(t *testing.T) {
	w := newWorld()
	w.sync(t, "a")
	if err := w.Sync(nil); err != nil { // Pod a is not ready.
		t.Fatalf("Sync returns %q, and the cache is up to date.", err)
	}
	w.want(t)
	// Pod a is ready again, and the cache still has the old Endpoints, however often it is asked.
	for range 3 {
		if err := w.Sync([]string{"a"}); !errors.Is(err, ErrStale) {
			t.Fatalf("The cache is late: it lists a, and the server does not. Sync returns %v, want ErrStale.\n"+
				"Otherwise the Endpoints stay without a: this was the first bug, kubernetes/kubernetes#125638.", err)
		}
	}
	w.sync(t, "a")
	w.want(t, "a")
}

func Test3AWebhookThatTakesTheChangeBack(t *testing.T) {
	w := newWorld()
	w.sync(t, "a")
	w.server.admit = func(e *Endpoints) { e.Addresses = []string{"a"} }
	w.sync(t, "a", "b")
	w.want(t, "a")
	w.server.admit = nil // The webhook is removed.
	w.sync(t, "a", "b")
	w.want(t, "a", "b")
	w.server.admit = func(e *Endpoints) { e.Addresses = append(e.Addresses, "x") } // Another one adds an address.
	if err := w.Sync([]string{"a"}); err != nil {
		t.Fatalf("Sync returns %q, and the cache is up to date.", err)
	}
	if err := w.Sync([]string{"a", "b"}); !errors.Is(err, ErrStale) {
		t.Fatalf("The server has stored something new, although not what it was sent, and the cache is late. Sync "+
			"returns %v, want ErrStale.", err)
	}
}

func Test4WaitingEnds(t *testing.T) {
	w := newWorld()
	for round := range 10 {
		addresses := []string{"a", "b", "c", "d", "e"}[:round%5+1]
		w.follow()
		if err := w.Sync(addresses); err != nil {
			t.Fatalf("Round %d: Sync returns %q with an up-to-date cache.", round, err)
		}
		w.want(t, addresses[:min(most, len(addresses))]...)
	}
}
