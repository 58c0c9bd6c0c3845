package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/loop/backlog"
)

// errOutgrown ends a warm-up run whose backlog has become too large.
var errOutgrown = errors.New("the backlog is outgrown")

// warmupRun is one run of the sources that can be run before the controller is.
type warmupRun[K comparable] struct {
	ctx     context.Context // what the sources are given; it lasts as long as the run
	cancel  context.CancelCauseFunc
	backlog *backlog.Backlog[K]
	// ended is closed by Warmup when all sources of the run have ended; nobody sends.
	ended chan struct{}
}

// Warmup runs the sources that tell everything anew when they are run again (see [Source]), and holds back the keys
// that they add until Run is called. Run then need not wait for them, and begins with what changed last. Warmup
// reconciles nothing, and the queue stays empty. What is held back is bounded; see Options.EnableWarmup.
//
// It returns when ctx is done, which must not be before that of Run is; when Run has returned; or at once, when Run
// was called before or there is nothing to do. If it returned before Run was called, Run starts without it.
//
// Errors: that of a source that failed, unless Run returns it.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller, for the name.
func (c *Controller[K]) Warmup(ctx context.Context) error {
	if on := c.options.EnableWarmup; on != nil && !*on {
		return nil
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "controller", c.name)
	ctx = klog.NewContext(ctx, logger)
	for {
		var sources sync.WaitGroup
		r := c.beginWarmup(ctx, &sources)
		if r == nil {
			return nil
		}
		sources.Wait()
		again, err := c.endWarmup(ctx, r)
		if !again {
			return err
		}
		logger.V(2).Info("Filling the backlog anew: too much came and went")
	}
}

// beginWarmup starts the sources, with a backlog. It returns nil when there is nothing to do.
func (c *Controller[K]) beginWarmup(ctx context.Context, sources *sync.WaitGroup) *warmupRun[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	repeats := func(f *feed[K]) bool { return f.repeats }
	if c.phase != created || c.warmup != nil || ctx.Err() != nil || !slices.ContainsFunc(c.feeds, repeats) {
		return nil
	}
	r := &warmupRun[K]{ended: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.backlog = backlog.New[K](func() { r.cancel(errOutgrown) })
	c.warmup = r
	start := c.starter(r.ctx, func(err error) { r.cancel(err); c.fail(err) }, sources, r.backlog)
	c.start = func(f *feed[K]) {
		if f.repeats {
			start(f)
		}
	}
	c.renewFeedsLocked()
	for _, f := range c.feeds {
		c.start(f)
	}
	sources.Go(func() { <-r.ctx.Done() }) // A source that ends by itself does not end the run.
	return r
}

// renewFeedsLocked replaces the feeds that have run.
func (c *Controller[K]) renewFeedsLocked() {
	for i, f := range c.feeds {
		if f.cancel != nil {
			c.feeds[i] = f.again()
		}
	}
}

// endWarmup reports whether there is to be another run.
func (c *Controller[K]) endWarmup(ctx context.Context, r *warmupRun[K]) (again bool, err error) {
	close(r.ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != created {
		return false, nil
	}
	c.warmup, c.start = nil, nil
	c.renewFeedsLocked()
	cause := context.Cause(r.ctx)
	switch {
	case ctx.Err() != nil:
		return false, nil
	case errors.Is(cause, errOutgrown):
		return true, nil
	}
	return false, cause
}

// fail ends Run, if that was called, with err.
func (c *Controller[K]) fail(err error) {
	c.mu.Lock()
	stop := c.stop
	c.mu.Unlock()
	if stop != nil {
		stop(err)
	}
}

// takeOver returns the run whose sources go on under Run, whose phase has begun; nil when there is none.
func (c *Controller[K]) takeOver() *warmupRun[K] {
	c.mu.Lock()
	r := c.warmup
	c.mu.Unlock()
	if r == nil || r.ctx.Err() == nil && r.backlog.Claim() {
		return r
	}
	r.cancel(nil)
	<-r.ended
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warmup = nil
	c.renewFeedsLocked()
	return nil
}

// flush lets the keys that were held back be reconciled.
func (c *Controller[K]) flush(r *warmupRun[K]) {
	r.backlog.Flush(c.queue.AddWith)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warmup = nil
}
