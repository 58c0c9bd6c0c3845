package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/klog/v2"
)

// Repeater is what a [Source] may be that tells everything anew when it is run again, as one does that tells of what is in
// a cache: it can be run before anybody works ([Controller.Warmup]), and what it said then be forgotten. A source that is none, or
// says no, runs when the controller does.
type Repeater interface {
	Repeats() bool
}

// Repeats says whether s is a [Repeater] and says so. It is for sources that wrap others.
func Repeats[K comparable](s Source[K]) bool {
	r, ok := s.(Repeater)
	return ok && r.Repeats()
}

// errOutgrown ends the sources of a round whose backlog has become too large.
var errOutgrown = errors.New("the backlog is outgrown")

// round is one run of those sources that run before the controller does.
type round[K comparable] struct {
	ctx     context.Context // what the sources are given; it lasts as long as the round
	cancel  context.CancelCauseFunc
	backlog *backlog[K]
	// ended is closed by Warmup when all sources of the round have ended; nobody sends.
	ended chan struct{}
}

// Warmup runs those sources that are [Repeater]s, and remembers the keys that they add, until Run is called: which then need not
// wait for them, and begins with what changed last. It reconciles nothing, and the queue stays empty. What is remembered is
// bounded, see Options.EnableWarmup.
//
// It returns when ctx is done, which must not be before that of Run is; when Run has returned; or at once, when Run was called
// before or there is nothing to do. When it returned before Run was called, that starts without it.
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
		r := c.beginRound(ctx, &sources)
		if r == nil {
			return nil
		}
		sources.Wait()
		again, err := c.endRound(ctx, r)
		if !again {
			return err
		}
		logger.V(2).Info("Filling the backlog anew: too much came and went")
	}
}

// beginRound starts the sources in the group, with a backlog. It returns nil when there is nothing to do.
func (c *Controller[K]) beginRound(ctx context.Context, sources *sync.WaitGroup) *round[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != created || c.round != nil || ctx.Err() != nil || !c.repeatsLocked() {
		return nil
	}
	r := &round[K]{ended: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.backlog = newBacklog[K](func() { r.cancel(errOutgrown) })
	c.round = r
	start := c.starter(r.ctx, func(err error) { r.cancel(err); c.fail(err) }, sources, r.backlog)
	c.start = func(f *feed[K]) {
		if Repeats(f.source) {
			start(f)
		}
	}
	c.renewFeedsLocked()
	for _, f := range c.feeds {
		c.start(f)
	}
	sources.Go(func() { <-r.ctx.Done() }) // A source that ends by itself does not end the round.
	return r
}

func (c *Controller[K]) repeatsLocked() bool {
	for _, f := range c.feeds {
		if Repeats(f.source) {
			return true
		}
	}
	return false
}

// renewFeedsLocked puts fresh feeds into the place of those that have run.
func (c *Controller[K]) renewFeedsLocked() {
	for i, f := range c.feeds {
		if f.cancel != nil {
			c.feeds[i] = newFeed(f.source)
		}
	}
}

// endRound says whether another one is due.
func (c *Controller[K]) endRound(ctx context.Context, r *round[K]) (again bool, err error) {
	close(r.ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != created {
		return false, nil
	}
	c.round, c.start = nil, nil
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

// takeOver returns the round whose sources go on under Run, whose phase has begun; nil when there is none.
func (c *Controller[K]) takeOver() *round[K] {
	c.mu.Lock()
	r := c.round
	c.mu.Unlock()
	if r == nil || r.ctx.Err() == nil && r.backlog.claim() {
		return r
	}
	r.cancel(nil)
	<-r.ended
	c.mu.Lock()
	defer c.mu.Unlock()
	c.round = nil
	c.renewFeedsLocked()
	return nil
}

// pour lets the keys that were held back be reconciled.
func (c *Controller[K]) pour(r *round[K]) {
	r.backlog.pour(c.queue)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.round = nil
}

// starter returns how a source's goroutine is started in the group, with a context that ends with ctx.
func (c *Controller[K]) starter(ctx context.Context, fail func(error), sources *sync.WaitGroup, held *backlog[K]) func(*feed[K]) {
	sink := &Sink[K]{queue: c.queue, stats: &c.stats, pace: c.pace}
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
