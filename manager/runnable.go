package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Runnable is what a [Manager] runs. Run blocks until ctx is done and everything it started has ended; a nil before that says
// that there is nothing more to do, an error stops the manager. See the package comment for what else a runnable may have.
type Runnable interface {
	Run(ctx context.Context) error
}

// ErrStopped is returned when something is added to a manager that is stopping or has stopped.
var ErrStopped = errors.New("the manager has stopped")

// leadership says whether a runnable waits for the lease.
type leadership int

const (
	withoutLeader leadership = iota
	withLeader
)

// entry is a runnable and what became of it.
type entry struct {
	runnable Runnable
	name     string
	needs    leadership
	started  bool          // guarded by the group's lock
	done     chan struct{} // closed when Run has returned and err is set; capacity 0
	err      error
}

func (e *entry) isDone() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// group holds the runnables of a manager.
type group struct {
	mu      sync.Mutex
	entries []*entry // in order of Add
	// start runs an entry's goroutine. Invariant: not nil exactly while entries of that leadership may start; an entry is
	// started iff it was nil at some time since the entry was added.
	start  [2]func(*entry)
	closed bool
}

func (g *group) add(r Runnable) (name string, err error) {
	e := &entry{runnable: r, name: fmt.Sprintf("%T", r), needs: withLeader, done: make(chan struct{})}
	if n, ok := r.(interface{ Name() string }); ok {
		e.name = n.Name()
	}
	if n, ok := r.(interface{ NeedLeaderElection() bool }); ok && !n.NeedLeaderElection() {
		e.needs = withoutLeader
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return e.name, ErrStopped
	}
	for _, other := range g.entries {
		if other.name == e.name {
			return e.name, errors.New("a runnable of that name exists")
		}
	}
	g.entries = append(g.entries, e)
	if start := g.start[e.needs]; start != nil {
		e.started = true
		start(e)
	}
	return e.name, nil
}

// open starts the entries of that leadership, and from now on every new one.
func (g *group) open(which leadership, start func(*entry)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.start[which] = start
	for _, e := range g.entries {
		if e.needs == which && !e.started {
			e.started = true
			start(e)
		}
	}
}

// close lets nothing start any more.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.start = [2]func(*entry){}
}

// active returns the entries that were started.
func (g *group) active() []*entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []*entry
	for _, e := range g.entries {
		if e.started {
			out = append(out, e)
		}
	}
	return out
}

// wait waits until all have returned, for at most patience, and returns the names of those that have not.
func (g *group) wait(patience time.Duration) (left []string) {
	timer := time.NewTimer(max(patience, 0))
	defer timer.Stop()
	for _, e := range g.active() {
		select {
		case <-e.done:
			continue
		default:
		}
		select {
		case <-e.done:
		case <-timer.C:
			timer.Reset(0) // for the next one too
			left = append(left, e.name)
		}
	}
	return left
}

// unfinished returns the names of those that run still.
func (g *group) unfinished(which leadership) (names []string) {
	for _, e := range g.active() {
		if e.needs == which && !e.isDone() {
			names = append(names, e.name)
		}
	}
	return names
}

// errors returns what those that have returned said.
func (g *group) errors() (errs []error) {
	for _, e := range g.active() {
		if e.isDone() && e.err != nil {
			errs = append(errs, e.err)
		}
	}
	return errs
}

func (g *group) names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := make([]string, 0, len(g.entries))
	for _, e := range g.entries {
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
