package reconcile

import (
	"context"
	"fmt"
	"sync"

	"github.com/flyball-dev/flyball/internal/loop/backlog"
)

// feed is a source and the goroutine that runs it.
type feed[K comparable] struct {
	source Source[K]
	// repeats: the source can be run before the controller, and then again; see [Source].
	repeats bool
	cancel  context.CancelFunc // set when the goroutine starts
	synced  chan struct{}      // closed by the source's goroutine, once; capacity 0
	gone    chan struct{}      // closed when the source's goroutine has ended; capacity 0
}

func newFeed[K comparable](s Source[K]) *feed[K] {
	r, ok := s.(interface{ Repeats() bool })
	return &feed[K]{source: s, repeats: ok && r.Repeats(), synced: make(chan struct{}), gone: make(chan struct{})}
}

// again returns a feed of the same source that has not run.
func (f *feed[K]) again() *feed[K] {
	return &feed[K]{source: f.source, repeats: f.repeats, synced: make(chan struct{}), gone: make(chan struct{})}
}

// isSynced reports whether everything that was there at the start was fed.
func (f *feed[K]) isSynced() bool {
	select {
	case <-f.synced:
		return true
	default:
		return false
	}
}

// startSources starts a goroutine per source that has none, in sources, and returns all there are. A source's error
// stops the controller through stop.
func (c *Controller[K]) startSources(ctx context.Context, stop context.CancelCauseFunc,
	sources *sync.WaitGroup,
) []*feed[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start = c.starter(ctx, stop, sources, nil)
	for _, f := range c.feeds {
		if f.cancel == nil {
			c.start(f)
		}
	}
	return append([]*feed[K](nil), c.feeds...)
}

// starter returns a function that starts a source's goroutine in sources, with a context that ends with ctx.
func (c *Controller[K]) starter(ctx context.Context, fail func(error), sources *sync.WaitGroup,
	held *backlog.Backlog[K],
) func(*feed[K]) {
	sink := &Sink[K]{controller: c}
	sink.backlog.Store(held)
	return func(f *feed[K]) {
		own, cancel := context.WithCancel(ctx)
		f.cancel = cancel
		sources.Go(func() {
			defer close(f.gone)
			defer cancel()
			if err := f.source.Run(own, sink, sync.OnceFunc(func() { close(f.synced) })); err != nil {
				fail(fmt.Errorf("controller %s: %w", c.name, err))
			}
		})
	}
}

// waitSynced returns true when every feed is synced, and false when ctx is done first. A source that ended early,
// with no more to say, is not waited for.
func waitSynced[K comparable](ctx context.Context, feeds []*feed[K]) bool {
	for _, f := range feeds {
		select {
		case <-f.synced:
		case <-f.gone:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}
