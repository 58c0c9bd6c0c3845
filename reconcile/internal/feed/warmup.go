package feed

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/backlog"
	"github.com/flyball-dev/flyball/workqueue"
)

// errOutgrown is the cause that ends a warm-up run when its backlog has become too large.
var errOutgrown = errors.New("the backlog is outgrown")

// warmup is one run of the sources that repeat, before the controller runs.
type warmup[K comparable] struct {
	ctx    context.Context // the context of the sources
	cancel context.CancelCauseFunc
	held   *backlog.Backlog[K, workqueue.Cause]
	// flushed reports whether the keys of held are in the queue.
	flushed    bool
	goroutines sync.WaitGroup
	// ended is closed by Warmup when all sources of the run have ended; capacity 0, no sends.
	ended chan struct{}
}

// Warmup implements reconcile.Controller.Warmup: it runs the sources that repeat until ctx or the controller ends. When
// the backlog is outgrown, it starts over with an empty backlog.
func (f *Feeds[K]) Warmup(ctx context.Context) error {
	for {
		w := f.beginWarmup(ctx)
		if w == nil {
			return nil
		}
		w.goroutines.Wait()
		again, err := f.endWarmup(ctx, w)
		if !again {
			return err
		}
		klog.FromContext(ctx).V(2).Info("Warm-up backlog grew too large; starting it over")
	}
}

// beginWarmup starts the sources that repeat. It returns nil if there are none, if Start was called, or if ctx is done.
func (f *Feeds[K]) beginWarmup(ctx context.Context) *warmup[K] {
	f.mu.Lock()
	defer f.mu.Unlock()
	repeats := func(feed *feed[K]) bool { return feed.repeats }
	if f.phase != created || f.warm != nil || ctx.Err() != nil || !slices.ContainsFunc(f.feeds, repeats) {
		return nil
	}
	w := &warmup[K]{ended: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.held = backlog.New[K, workqueue.Cause](func() { w.cancel(errOutgrown) })
	f.warm = w
	start := starter(w.ctx, func(err error) { w.cancel(err); f.failed(err) }, &w.goroutines, w.held)
	f.start = func(feed *feed[K]) {
		if feed.repeats {
			start(feed)
		}
	}
	f.renewLocked()
	for _, feed := range f.feeds {
		f.start(feed)
	}
	w.goroutines.Go(func() { <-w.ctx.Done() }) // Otherwise the run would end when its last source returns early.
	return w
}

// renewLocked replaces the feeds whose goroutines have ended, so that they can be started again.
func (f *Feeds[K]) renewLocked() {
	for i, old := range f.feeds {
		if old.started {
			f.feeds[i] = newFeed(old.source, old.repeats)
		}
	}
}

// endWarmup reports whether Warmup should begin another run.
func (f *Feeds[K]) endWarmup(ctx context.Context, w *warmup[K]) (again bool, err error) {
	close(w.ended)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase != created {
		return false, nil
	}
	f.warm, f.start = nil, nil
	f.renewLocked()
	cause := context.Cause(w.ctx)
	switch {
	case ctx.Err() != nil:
		return false, nil
	case errors.Is(cause, errOutgrown):
		return true, nil
	}
	return false, cause
}

// failed ends the controller with err, if it is running.
func (f *Feeds[K]) failed(err error) {
	f.mu.Lock()
	fail := f.fail
	f.mu.Unlock()
	if fail != nil {
		fail(err)
	}
}

// takeOver lets the sources of a warm-up run continue if the run is alive and its backlog is not outgrown. Otherwise it
// ends the run.
func (f *Feeds[K]) takeOver() {
	f.mu.Lock()
	w := f.warm
	f.mu.Unlock()
	if w == nil || w.ctx.Err() == nil && w.held.Claim() {
		return
	}
	w.cancel(nil)
	<-w.ended
	f.mu.Lock()
	defer f.mu.Unlock()
	f.warm = nil
	f.renewLocked()
}
