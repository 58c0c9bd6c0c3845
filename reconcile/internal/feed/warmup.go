package feed

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/loop/backlog"
	"github.com/flyball-dev/flyball/workqueue"
)

// errOutgrown ends a warm-up run whose backlog has become too large.
var errOutgrown = errors.New("the backlog is outgrown")

// warmup is one run of the sources that can be run before the controller is.
type warmup[K comparable] struct {
	ctx    context.Context // what the sources are given; it lasts as long as the run
	cancel context.CancelCauseFunc
	held   *backlog.Backlog[K, workqueue.Cause]
	// flushed: what was held is in the queue.
	flushed    bool
	goroutines sync.WaitGroup
	// ended is closed by Warmup when all sources of the run have ended; nobody sends.
	ended chan struct{}
}

// Warmup is Warmup of a reconcile.Controller: it runs the sources that repeat, and returns when they have ended.
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

// beginWarmup starts the sources, with a backlog. It returns nil when there is nothing to do.
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
	w.goroutines.Go(func() { <-w.ctx.Done() }) // A source that ends by itself does not end the run.
	return w
}

// renewLocked replaces the feeds that have run.
func (f *Feeds[K]) renewLocked() {
	for i, old := range f.feeds {
		if old.started {
			f.feeds[i] = newFeed(old.source, old.repeats)
		}
	}
}

// endWarmup reports whether there is to be another run.
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

// failed ends the controller, if it runs, with err.
func (f *Feeds[K]) failed(err error) {
	f.mu.Lock()
	fail := f.fail
	f.mu.Unlock()
	if fail != nil {
		fail(err)
	}
}

// takeOver lets a warm-up run go on if it can; else it ends it.
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
