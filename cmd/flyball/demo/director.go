package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/client"
)

// director plays a story on a cluster.
type director struct {
	client client.Client
	// look reads the caches.
	look func() state
	// changed receives a signal when a cache has changed. The caches' handlers send, and drop a signal if one is
	// already waiting; the channel has capacity 1 and is never closed.
	changed <-chan struct{}
	counts  func() counts
	screen  *screen
	timeout time.Duration // of each step
	// begin, if not nil, is called before each step. It may change timeout.
	begin func(step)
}

// counts are the sums over the pipeline's stages since the start.
type counts struct {
	watch, queue, sync uint64
	// watchOnly means that the controllers run elsewhere, so that only the watch events are counted.
	watchOnly bool
}

func (c counts) plus(o counts) counts {
	return counts{c.watch + o.watch, c.queue + o.queue, c.sync + o.sync, c.watchOnly}
}

func (c counts) minus(o counts) counts {
	return counts{c.watch - o.watch, c.queue - o.queue, c.sync - o.sync, c.watchOnly}
}

// String returns the counts in columns.
func (c counts) String() string {
	if c.watchOnly {
		return fmt.Sprintf("watch %4d", c.watch)
	}
	return fmt.Sprintf("watch %4d → queue %4d → sync %4d", c.watch, c.queue, c.sync)
}

// unmetError is the error of a step that did not reach its expected outcome.
type unmetError struct {
	step, missing string
	after         time.Duration
}

func (e *unmetError) Error() string {
	return fmt.Sprintf("%q did not converge within %s: expected %s", e.step, e.after, e.missing)
}

// errTooLong is the cause of a step's context that timed out, rather than ending with the demo.
var errTooLong = errors.New("the step took too long")

// errStopped is the error of a demo that the user stopped before the end of its story.
var errStopped = errors.New("stopped")

// outcome is how a step ended.
type outcome int

const (
	converged outcome = iota
	stopped           // the user stopped the demo
	failed
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return converged
	case errors.Is(err, errStopped):
		return stopped
	}
	return failed
}

// play runs the steps in order, up to the first that fails.
func (d *director) play(ctx context.Context, steps []step) error {
	for i, s := range steps {
		if d.begin != nil {
			d.begin(s)
		}
		line := d.screen.begin(i+1, s.title)
		before, start := d.counts(), time.Now()
		err := d.step(ctx, s, line)
		line.end(outcomeOf(err), d.counts().minus(before), time.Since(start))
		if err != nil {
			return err
		}
	}
	return nil
}

// step runs s and waits until its outcome has lasted as long as it must.
func (d *director) step(ctx context.Context, s step, line *line) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.timeout, errTooLong)
	defer cancel()
	if err := s.do(ctx, d.client); err != nil {
		if ctx.Err() != nil {
			return d.ended(ctx, s, "an answer of the API: "+err.Error())
		}
		return err
	}
	most := 0
	var met <-chan time.Time // fires when the outcome has lasted long enough; nil until the outcome is reached
	for {
		p := s.until(d.look())
		if most = max(most, p.left); p.want == 0 {
			p.have, p.want = most-p.left, most
		}
		line.show(p)
		switch {
		case p.missing != "":
			met = nil
		case s.hold == 0:
			return nil
		case met == nil:
			met = time.After(s.hold)
		}
		select {
		case <-d.changed:
		case <-met:
			return nil
		case <-ctx.Done():
			return d.ended(ctx, s, p.missing)
		}
	}
}

// ended returns the error of a step whose ctx ended before it was done.
func (d *director) ended(ctx context.Context, s step, missing string) error {
	if errors.Is(context.Cause(ctx), errTooLong) {
		return &unmetError{step: s.title, missing: missing, after: d.timeout}
	}
	return fmt.Errorf("%w at %q: %w", errStopped, s.title, context.Cause(ctx))
}
