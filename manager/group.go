package manager

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/internal/closed"
)

// group holds the runnables of a manager.
type group struct {
	mu      sync.Mutex
	entries []*entry // in order of Add
	// start has the functions that start an entry's goroutine, by leadership. Invariant: a function is not nil exactly
	// while entries of that leadership may start. An entry has started if and only if its function has been not nil at
	// some time since the entry was added.
	start [2]func(*entry)
	// warm starts the warm-up of an entry. Invariant: it is not nil exactly while this process may become the leader.
	warm   func(*entry)
	closed bool
}

// add adds an entry, and starts it if entries of its leadership may start.
func (g *group) add(e *entry) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrStopped
	}
	name := e.name
	for n := 2; slices.ContainsFunc(g.entries, func(other *entry) bool { return other.name == e.name }); n++ {
		if _, isFunc := e.runnable.(RunnableFunc); !isFunc {
			return fmt.Errorf("a runnable of that name exists already: choose another name, or remove it first")
		}
		e.name = fmt.Sprintf("%s-%d", name, n)
	}
	g.entries = append(g.entries, e)
	g.startLocked(e)
	return nil
}

func (g *group) startLocked(e *entry) {
	start := g.start[e.needs]
	switch {
	case e.started:
	case start != nil:
		e.started = true
		start(e)
	case g.warm != nil && e.needs == withLeader && e.warm == nil:
		g.warm(e)
	}
}

// warmUp starts the warm-up of the entries that wait for leadership, and of every such entry that is added later.
func (g *group) warmUp(warm func(*entry)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.warm = warm
	for _, e := range g.entries {
		g.startLocked(e)
	}
}

// startAll starts the entries of that leadership, and from now on every such entry that is added.
func (g *group) startAll(needs leadership, start func(*entry)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.start[needs] = start
	for _, e := range g.entries {
		g.startLocked(e)
	}
}

// stopStarting prevents further starts of entries of that leadership until the next startAll.
func (g *group) stopStarting(needs leadership) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.start[needs] = nil
}

// close prevents all further starts.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.start, g.warm = [2]func(*entry){}, nil
}

func (g *group) remove(e *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removeLocked(e)
}

func (g *group) removeLocked(e *entry) {
	g.entries = slices.DeleteFunc(g.entries, func(other *entry) bool { return other == e })
}

// claim reserves the entry of that name until unclaim, for a caller that removes or restarts it. started reports
// whether the entry was started.
//
// Errors: there is no entry of that name; another caller has claimed it.
func (g *group) claim(name string) (e *entry, started bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.entries, func(e *entry) bool { return e.name == name })
	switch {
	case i < 0:
		return nil, false, fmt.Errorf("unknown runnable; known: %s", strings.Join(namesOf(g.entries), ", "))
	case g.entries[i].changing:
		return nil, false, errors.New("it is being removed or restarted already")
	}
	g.entries[i].changing = true
	return g.entries[i], g.entries[i].started, nil
}

// claimEnded claims all started entries of one leadership, except those that another caller has claimed.
func (g *group) claimEnded(needs leadership) (all []*entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.entries {
		if e.started && e.needs == needs && !e.changing {
			e.changing = true
			all = append(all, e)
		}
	}
	return all
}

func (g *group) unclaim(e *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e.changing = false
}

// removeUnstarted removes the entry if it was not started, and reports whether it did.
func (g *group) removeUnstarted(e *entry) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.started {
		return false
	}
	g.removeLocked(e)
	return true
}

// replace replaces an entry that has run by a fresh one. It does nothing if the old entry was removed in the meantime.
func (g *group) replace(old, fresh *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.entries, old); i >= 0 {
		g.entries[i] = fresh
		g.startLocked(fresh)
	}
}

// where returns the entries for which match, which is called under the lock, returns true.
func (g *group) where(match func(*entry) bool) (found []*entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.entries {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

func (g *group) all() []*entry { return g.where(func(*entry) bool { return true }) }

// active returns the started entries.
func (g *group) active() []*entry { return g.where(func(e *entry) bool { return e.started }) }

// activeWith returns the started entries of one leadership.
func (g *group) activeWith(needs leadership) []*entry {
	return g.where(func(e *entry) bool { return e.started && e.needs == needs })
}

// warming returns the entries that were not started and whose warm-up is still going on.
func (g *group) warming() []*entry {
	return g.where(func(e *entry) bool { return !e.started && e.warm != nil && !closed.Is(e.warm.done) })
}

// wait waits for at most patience until all entries have returned, and returns those that have not.
func wait(entries []*entry, patience time.Duration) (left []*entry) {
	timer := time.NewTimer(max(patience, 0))
	defer timer.Stop()
	for _, e := range entries {
		if e.isDone() {
			continue
		}
		select {
		case <-e.done:
		case <-timer.C:
			timer.Reset(0) // so that the next wait ends at once too
			left = append(left, e)
		}
	}
	return left
}

// errors returns the errors of the entries that have returned.
func (g *group) errors() (errs []error) {
	for _, e := range g.active() {
		if e.isDone() && e.err != nil {
			errs = append(errs, e.err)
		}
	}
	return errs
}

// namesOf returns the names of entries.
func namesOf(entries []*entry) []string {
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.name)
	}
	return names
}

// find returns the entry of that name and whether it was started.
func (g *group) find(name string) (e *entry, started bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.entries {
		if e.name == name {
			return e, e.started
		}
	}
	return nil, false
}

// describe returns the names of entries, each with its work in flight: "web: default/a running for 10s; gc".
func describe(entries []*entry) string {
	texts := make([]string, 0, len(entries))
	for _, e := range entries {
		text := e.name
		if keys := e.inFlight(); len(keys) > 0 {
			text += ": " + shorten(keys)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// maxKeys is the maximum number of keys of one runnable that an error names.
const maxKeys = 10

func shorten(keys []string) string {
	if more := len(keys) - maxKeys; more > 0 {
		keys = append(slices.Clone(keys[:maxKeys]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(keys, ", ")
}
