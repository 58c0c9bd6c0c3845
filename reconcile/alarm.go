package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

// panicsInARow is how many reconciles must panic, with none that does not between them, before Health says so.
const panicsInARow = 10

// since is a key and the time since when something is so.
type since[K comparable] struct {
	key  K
	time time.Time
}

// unwell says what is wrong with keys that are being worked on, in words for people; nil when nothing is.
func (c *Controller[K]) unwell() (complaints []error) {
	c.mu.Lock()
	hung := longer(c.inFlight, c.options.HungAfter)
	failing := longer(c.failing, c.options.FailingAfter)
	c.mu.Unlock()
	if len(hung) > 0 {
		complaints = append(complaints, fmt.Errorf("%s: %s", c.name, describe(hung, "reconciling")))
	}
	if len(failing) > 0 {
		complaints = append(complaints, fmt.Errorf("%s: %s", c.name, describe(failing, "failing")))
	}
	if c.options.FailingAfter >= 0 {
		complaints = append(complaints, c.contradictions.complaints(c.name)...)
		complaints = append(complaints, c.refusals.complaints(c.name)...)
	}
	if n := c.stats.panicking.Load(); n >= panicsInARow {
		complaints = append(complaints, fmt.Errorf("%s: the last %d reconciles panicked", c.name, n))
	}
	return complaints
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
	return fmt.Sprintf("%d %s %s, %v for %s", len(keys), noun, what, keys[0].key, time.Since(keys[0].time).Round(time.Second))
}

// watchHung logs each reconcile that takes too long, once, until ctx is done.
func (c *Controller[K]) watchHung(ctx context.Context) {
	if c.options.HungAfter < 0 {
		return
	}
	tick := time.NewTicker(max(c.options.HungAfter/4, time.Millisecond))
	defer tick.Stop()
	told := map[K]time.Time{} // by the start of the run that was told of
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		hung := longer(c.inFlight, c.options.HungAfter)
		c.mu.Unlock()
		still := make(map[K]time.Time, len(hung))
		for _, h := range hung {
			still[h.key] = h.time
			if told[h.key] == h.time {
				continue
			}
			c.stats.hung.Add(1)
			klog.FromContext(ctx).Error(nil, "Reconcile hangs: its key is blocked, and one worker", "key", h.key, "duration", time.Since(h.time))
		}
		told = still
	}
}
