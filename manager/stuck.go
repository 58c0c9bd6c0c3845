package manager

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/informer"
)

// defaultStuckAfter is longer than ten minutes, because every watch is reopened after at most that time.
const defaultStuckAfter = 15 * time.Minute

// progress detects counters that stand still although there is something to do. It compares them only when it is
// called, which a readiness probe does every few seconds.
type progress struct {
	mu sync.Mutex
	// marks holds the last seen value of each counter. Invariant: it holds only counters that had something to do at
	// the last call.
	marks map[string]mark
}

// mark is a counter's value and the time at which it reached that value.
type mark struct {
	count int64
	since time.Time
}

// counter is a counter that should rise while there is something to do.
type counter struct {
	of       string // what the counter belongs to, for people
	name     string // unique within of
	count    int64
	waits    bool // there is something to do
	complain func(still time.Duration) string
}

// still returns a check for each counter that has stood still for that long.
func (p *progress) still(counters []counter, after time.Duration) (found []check) {
	p.mu.Lock()
	defer p.mu.Unlock()
	marks := make(map[string]mark, len(counters))
	for _, c := range counters {
		if !c.waits {
			continue
		}
		key := c.of + "\n" + c.name
		now, ok := p.marks[key]
		if !ok || now.count != c.count {
			now = mark{c.count, time.Now()}
		}
		marks[key] = now
		if stood := time.Since(now.since); stood >= after {
			found = append(found, check{name: c.of, problem: c.complain(stood.Round(time.Second))})
		}
	}
	p.marks = marks
	return found
}

// checkStuck finds informers that report themselves healthy and make no progress: a handler, transform or index
// function does not return, or the reflector receives nothing, not even the end of its watch.
func (m *Manager) checkStuck() []check {
	if m.options.StuckAfter < 0 {
		return nil
	}
	failing := map[string]bool{}
	for _, h := range m.informers.Health() {
		if h.Err != nil || !h.Synced {
			failing[h.Resource] = true // already reported
		}
	}
	var counters []counter
	for name, s := range m.informers.Stats() {
		resource, _, _ := strings.Cut(name, " (")
		counters = append(counters, countersOf(name, s, !failing[resource])...)
	}
	slices.SortFunc(counters, func(a, b counter) int { return strings.Compare(a.of+a.name, b.of+b.name) })
	return m.progress.still(counters, m.options.StuckAfter)
}

func countersOf(name string, s informer.Stats, well bool) []counter {
	of := "informer " + name
	counters := []counter{{
		of: of, name: "server", count: s.Events + s.Bookmarks + s.Lists + s.Watches, waits: well,
		complain: func(d time.Duration) string { return fmt.Sprintf("the server has sent nothing for %v", d) },
	}, {
		of: of, name: "cache", count: s.Batches, waits: s.Queued > 0,
		complain: func(d time.Duration) string {
			return fmt.Sprintf(
				"%d changes have not been taken into the cache for %v: does a transform or an index function hang?",
				s.Queued, d,
			)
		},
	}}
	for i, h := range s.Handlers {
		counters = append(counters, counter{
			of: of, name: fmt.Sprintf("handler %d %s", i, h.Name), count: h.Delivered, waits: h.Running > 0,
			complain: func(d time.Duration) string {
				return fmt.Sprintf("handler %s has not returned for %v, %d changes wait", h.Name, d, h.Pending)
			},
		})
	}
	return counters
}
