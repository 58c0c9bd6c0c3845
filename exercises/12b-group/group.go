// Package group is task 12b: a process that begins to work when it stops.
//
// An operator runs in two processes, of which one leads. Its manager puts the controllers, which only the leader may
// run, into a Group. It calls Start when the process gets the lease, and StopAndWait when the process ends.
//
// An update replaces both processes. Users report that two processes write for a moment during an update. The log of
// the follower, which never had the lease, has the message "writing the last statuses".
//
// controller-runtime v0.17.2 has this bug in pkg/manager/runnable_group.go, and
// https://github.com/kubernetes-sigs/controller-runtime/issues/2719 reports it. It was fixed in v0.17.3.
//
// Run the tests, read StopAndWait, and find out which call should not be there. That call also has a second purpose.
package group

import (
	"context"
	"errors"
	"sync"
)

// ErrStopped is returned by Add after the group was stopped.
var ErrStopped = errors.New("the group has stopped")

// A Runnable runs until its context ends.
type Runnable func(ctx context.Context)

// A Group starts and stops runnables together.
type Group struct {
	start, stop sync.Once
	ctx         context.Context
	cancel      context.CancelFunc
	running     sync.WaitGroup

	mu               sync.Mutex
	started, stopped bool
	// waiting has the runnables that were added before Start.
	waiting []Runnable
}

// New returns an empty group.
func New() *Group {
	g := &Group{}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Add adds a runnable. It starts with the group, or at once if the group has started.
func (g *Group) Add(r Runnable) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.stopped:
		return ErrStopped
	case g.started:
		g.running.Go(func() { r(g.ctx) })
	default:
		g.waiting = append(g.waiting, r)
	}
	return nil
}

// Start starts the runnables. Further calls do nothing.
func (g *Group) Start() {
	g.start.Do(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.started = true
		for _, r := range g.waiting {
			g.running.Go(func() { r(g.ctx) })
		}
		g.waiting = nil
	})
}

// StopAndWait ends the contexts of the runnables and waits until they have returned. After that, no runnable can be
// added or started.
func (g *Group) StopAndWait() {
	g.stop.Do(func() {
		g.Start() // so that a later call of Start does nothing
		g.mu.Lock()
		g.stopped = true
		g.mu.Unlock()
		g.cancel()
		g.running.Wait()
	})
}
