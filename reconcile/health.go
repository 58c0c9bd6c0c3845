package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/reconcile/internal/contradiction"
	"github.com/flyball-dev/flyball/reconcile/internal/overdue"
)

// panicsInARow is the number of reconciles that must panic in a row before Alive and Health report it.
const panicsInARow = 10

func (c *engine[K]) Health() error {
	if !c.feeds.Running() && !c.feeds.Warming() {
		return c.Alive()
	}
	problems := append(c.keyProblems(), c.panicking())
	return errors.Join(append(problems, c.feeds.Health()...)...)
}

func (c *engine[K]) Alive() error {
	if !c.feeds.Running() {
		return fmt.Errorf("controller %s: not running", c.name)
	}
	return c.panicking()
}

func (c *engine[K]) panicking() error {
	if n := c.stats.Panicking.Load(); n >= panicsInARow {
		return fmt.Errorf("%s: the last %d reconciles panicked", c.name, n)
	}
	return nil
}

// keyProblems returns an error for each kind of problem that keys have. Elements may be nil.
func (c *engine[K]) keyProblems() (problems []error) {
	c.mu.Lock()
	running, failing, contradicted := c.keys.began(), map[K]time.Time{}, map[K]*contradiction.State{}
	for key, e := range c.keys.entries {
		if !e.failing.IsZero() {
			failing[key] = e.failing
		}
		if e.contradiction != nil {
			contradicted[key] = e.contradiction
		}
	}
	missing := c.checks.forbidden.Health(c.name)
	c.mu.Unlock()
	problems = append(problems, overdue.Report(c.name, "reconciling", running, c.options.HungAfter))
	if c.options.FailingAfter >= 0 {
		problems = append(problems, overdue.Report(c.name, "failing", failing, c.options.FailingAfter),
			contradiction.Health(c.name, contradicted))
		problems = append(problems, missing...)
	}
	return problems
}

// checkDeadlines releases the slots of reconciles that have become slow, and logs those that have begun to hang.
func (c *engine[K]) checkDeadlines(ctx context.Context, now time.Time) {
	hanging := map[K]time.Duration{}
	c.mu.Lock()
	for _, e := range c.keys.running {
		slow, hung := c.checks.deadlines.Pass(&e.run, now)
		if slow {
			c.queue.Release(e.key) // The run cannot end while mu is held. Release calls no user code.
		}
		if hung {
			hanging[e.key] = now.Sub(e.run.Began)
		}
	}
	c.mu.Unlock()
	for key, duration := range hanging {
		c.stats.Hung.Add(1)
		klog.FromContext(ctx).Error(nil, "Reconcile hangs; its key and a worker are blocked", "key", key,
			"duration", duration)
	}
}

func (c *engine[K]) Hung() map[K]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	hung := map[K]time.Time{}
	for _, e := range c.keys.running {
		if e.run.Hung {
			hung[e.key] = e.run.Began
		}
	}
	return hung
}
