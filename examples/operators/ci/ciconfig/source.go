package ciconfig

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// Added returns a source. It emits what keys returns for each index key that gains a configuration. At the start these
// are all keys, so that nothing is missed while the process was not running; later they are the changes. It does not
// report removals.
func Added[K comparable](a *Agent, index Index, keys func(ctx context.Context, key string) []K) reconcile.Source[K] {
	return &feed[K]{agent: a, source: &source{index: index, changed: make(chan struct{}, 1)}, keys: keys}
}

// source delivers the keys of one index.
type source struct {
	index Index
	// changed signals Run that pending has keys. The goroutine that adds the keys sends, and Run receives. Capacity 1;
	// never closed.
	changed chan struct{}

	mu      sync.Mutex
	pending map[string]bool
}

// tell adds keys. It never blocks.
func (s *source) tell(keys []string) {
	if len(keys) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[string]bool{}
	}
	for _, key := range keys {
		s.pending[key] = true
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *source) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.Sorted(maps.Keys(s.pending))
	s.pending = nil
	return keys
}

type feed[K comparable] struct {
	agent  *Agent
	source *source
	keys   func(context.Context, string) []K
}

// String implements reconcile.Source.
func (f *feed[K]) String() string { return string(f.source.index) }

// Health implements reconcile.Source.
func (f *feed[K]) Health() error { return nil }

// Repeats implements reconcile.Source.
func (f *feed[K]) Repeats() bool { return false }

// Run implements reconcile.Source.
func (f *feed[K]) Run(ctx context.Context, out *reconcile.Sink[K], synced func()) error {
	f.agent.subscribe(f.source)
	defer f.agent.unsubscribe(f.source)
	f.hand(ctx, out)
	synced()
	for {
		select {
		case <-f.source.changed:
			f.hand(ctx, out)
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *feed[K]) hand(ctx context.Context, out *reconcile.Sink[K]) {
	for _, indexKey := range f.source.take() {
		q := out.For(workqueue.Cause{Source: f.String(), Event: "Added", Object: indexKey, Time: time.Now()})
		for _, key := range f.keys(ctx, indexKey) {
			q.Add(key)
		}
	}
}

// subscribe makes s receive all present keys, and every change from now on.
func (a *Agent) subscribe(s *source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sources[s] = true
	s.tell(slices.Collect(maps.Keys(a.byKey[s.index])))
}

func (a *Agent) unsubscribe(s *source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sources, s)
}
