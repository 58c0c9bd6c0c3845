package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/reconcile/internal/contradiction"
	"github.com/flyball-dev/flyball/reconcile/internal/hotloop"
)

// panicsInARow is how many reconciles must panic, with none that does not between them, before Health reports it.
const panicsInARow = 10

// Health is nil when the controller reconciles, or could at once, and its keys do well; else it names what it waits
// for, and which keys hang or fail. In [Controller.Warmup] it is about the sources that run then.
func (c *Controller[K]) Health() error {
	c.mu.Lock()
	feeds, now, warming := slices.Clone(c.feeds), c.phase, c.phase == created && c.warmup != nil
	c.mu.Unlock()
	if now != running && !warming {
		return c.alive()
	}
	wrong := c.unwell()
	if err := c.panicking(); err != nil {
		wrong = append(wrong, err)
	}
	for _, f := range feeds {
		if warming && !f.repeats || f.isSynced() {
			continue
		}
		if err := f.source.Health(); err != nil {
			wrong = append(wrong, err)
		} else {
			wrong = append(wrong, fmt.Errorf("%s: the initial objects are still being handled", f.source))
		}
	}
	return errors.Join(wrong...)
}

// alive is nil while the controller runs and does not panic all the time.
func (c *Controller[K]) alive() error {
	c.mu.Lock()
	now := c.phase
	c.mu.Unlock()
	if now != running {
		return fmt.Errorf("controller %s: not running", c.name)
	}
	return c.panicking()
}

func (c *Controller[K]) panicking() error {
	if n := c.stats.panicking.Load(); n >= panicsInARow {
		return fmt.Errorf("%s: the last %d reconciles panicked", c.name, n)
	}
	return nil
}

// unwell returns what is wrong with keys that are being worked on, in words for people; nil when nothing is.
func (c *Controller[K]) unwell() (complaints []error) {
	c.mu.Lock()
	running := c.runningLocked()
	failing := c.keys.since(func(e *entry[K]) time.Time { return e.failing })
	contradicted := map[K]*contradiction.State{}
	for key, e := range c.keys.entries {
		if e.contradiction != nil {
			contradicted[key] = e.contradiction
		}
	}
	missing := c.rooms.forbidden.Complaints(c.name)
	c.mu.Unlock()
	if hung := longer(running, c.options.HungAfter); len(hung) > 0 {
		complaints = append(complaints, fmt.Errorf("%s: %s", c.name, describe(hung, "reconciling")))
	}
	if c.options.FailingAfter < 0 {
		return complaints
	}
	if failing := longer(failing, c.options.FailingAfter); len(failing) > 0 {
		complaints = append(complaints, fmt.Errorf("%s: %s", c.name, describe(failing, "failing")))
	}
	times := map[K]time.Time{}
	for key, state := range contradicted {
		if since, _, held := state.Held(); held {
			times[key] = since
		}
	}
	if held := longer(times, 0); len(held) > 0 {
		_, why, _ := contradicted[held[0].key].Held()
		complaints = append(complaints,
			fmt.Errorf("%s: %s: %w", c.name, describe(held, "contradicted by the server"), why))
	}
	return append(complaints, missing...)
}

func (c *Controller[K]) runningLocked() map[K]time.Time {
	times := make(map[K]time.Time, len(c.keys.running))
	for _, e := range c.keys.running {
		times[e.key] = e.run.Began
	}
	return times
}

// since is a key and the time since when something is so.
type since[K comparable] struct {
	key  K
	time time.Time
}

// longer returns the keys for which it has been so for at least limit, longest first. A negative limit is none.
func longer[K comparable](times map[K]time.Time, limit time.Duration) []since[K] {
	if limit < 0 {
		return nil
	}
	var found []since[K]
	for key, t := range times {
		if time.Since(t) >= limit {
			found = append(found, since[K]{key, t})
		}
	}
	slices.SortFunc(found, func(a, b since[K]) int {
		return cmp.Or(a.time.Compare(b.time), strings.Compare(fmt.Sprint(a.key), fmt.Sprint(b.key)))
	})
	return found
}

// describe puts keys into one short line: "3 keys failing, ns/a for 12m0s".
func describe[K comparable](keys []since[K], what string) string {
	noun := "keys"
	if len(keys) == 1 {
		noun = "key"
	}
	return fmt.Sprintf("%d %s %s, %v for %s", len(keys), noun, what, keys[0].key,
		time.Since(keys[0].time).Round(time.Second))
}

// watchDeadlines looks at reconciles that take long, until ctx is done.
func (c *Controller[K]) watchDeadlines(ctx context.Context) {
	c.mu.Lock()
	fired := c.rooms.deadlines.Start()
	c.mu.Unlock()
	for {
		select {
		case <-fired:
		case <-ctx.Done():
			c.mu.Lock()
			defer c.mu.Unlock()
			c.rooms.deadlines.Stop()
			return
		}
		for key, took := range c.passDeadlines(time.Now()) {
			c.stats.hung.Add(1)
			klog.FromContext(ctx).Error(nil, "Reconcile hangs: its key is blocked, and one worker", "key", key,
				"duration", took)
		}
	}
}

// passDeadlines releases the slots of the reconciles that are slow now, and returns those that hang now.
func (c *Controller[K]) passDeadlines(now time.Time) map[K]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	hanging := map[K]time.Duration{}
	for _, e := range c.keys.running {
		slow, hung := c.rooms.deadlines.Pass(&e.run, now)
		if slow {
			c.queue.Release(e.key) // It is in flight until done has had the lock. A queue calls nobody back.
		}
		if hung {
			hanging[e.key] = now.Sub(e.run.Began)
		}
	}
	c.rooms.deadlines.Fired(c.keys.runs(), now)
	return hanging
}

// SelfTriggered is a [SelfTriggeredError], when a key of the controller has been found to trigger itself; else nil.
func (c *Controller[K]) SelfTriggered() error {
	if found := c.rooms.hotloop.First(); found != nil {
		return c.loopError(found)
	}
	return nil
}

func (c *Controller[K]) loopError(l *hotloop.Loop) error {
	return &SelfTriggeredError{Controller: c.name, Key: l.Key, Runs: l.Runs, Duration: l.Duration, Trigger: l.Trigger}
}
