package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/reconcile/internal/complaint"
	"github.com/flyball-dev/flyball/reconcile/internal/contradiction"
)

// panicsInARow is how many reconciles must panic, with none that does not between them, before Health reports it.
const panicsInARow = 10

func (c *engine[K]) Health() error {
	if !c.feeds.Running() && !c.feeds.Warming() {
		return c.Alive()
	}
	wrong := append(c.unwell(), c.panicking())
	return errors.Join(append(wrong, c.feeds.Health()...)...)
}

// Alive is nil while the controller runs and does not panic all the time.
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

// unwell returns what is wrong with keys, in words for people. Elements may be nil.
func (c *engine[K]) unwell() (complaints []error) {
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
	missing := c.rooms.forbidden.Complaints(c.name)
	c.mu.Unlock()
	complaints = append(complaints, complaint.About(c.name, "reconciling", running, c.options.HungAfter))
	if c.options.FailingAfter >= 0 {
		complaints = append(complaints, complaint.About(c.name, "failing", failing, c.options.FailingAfter),
			contradiction.Complaint(c.name, contradicted))
		complaints = append(complaints, missing...)
	}
	return complaints
}

// passDeadlines releases the slots of the reconciles that are slow now, and logs those that hang now.
func (c *engine[K]) passDeadlines(ctx context.Context, now time.Time) {
	hanging := map[K]time.Duration{}
	c.mu.Lock()
	for _, e := range c.keys.running {
		slow, hung := c.rooms.deadlines.Pass(&e.run, now)
		if slow {
			c.queue.Release(e.key) // It is in flight until done has had the lock. A queue calls nobody back.
		}
		if hung {
			hanging[e.key] = now.Sub(e.run.Began)
		}
	}
	c.mu.Unlock()
	for key, took := range hanging {
		c.stats.Hung.Add(1)
		klog.FromContext(ctx).Error(nil, "Reconcile hangs; its key and a worker are blocked", "key", key,
			"duration", took)
	}
}
