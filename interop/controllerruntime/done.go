package controllerruntime

import (
	"slices"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
)

// allDone is a client-go DoneChecker that is done when all of its parts are.
//
// If there is one part, Done returns its channel. For several parts, Done makes one channel of its own. A caller of
// Done closes it if all parts are done by then; otherwise a goroutine does. That goroutine starts with the first call
// that comes too early, and also ends when the parts cannot become done any more.
//
// Concurrency: add must not be called concurrently with anything else; the other methods may be called at any time.
type allDone struct {
	name  string
	parts []donePart
	// If stopped or removed is closed, parts that are not done never will be.
	stopped, removed <-chan struct{}

	waits, closes sync.Once
	all           chan struct{} // closed once, when all parts are done; nothing is sent
}

// donePart has a channel that is closed when the part is done, and one that is closed when it never will be (or nil).
type donePart struct{ done, ends <-chan struct{} }

var _ toolscache.DoneChecker = (*allDone)(nil)

func newAllDone(name string, stopped, removed <-chan struct{}) *allDone {
	return &allDone{name: name, stopped: stopped, removed: removed, all: make(chan struct{})}
}

func (d *allDone) add(done, ends <-chan struct{}) { d.parts = append(d.parts, donePart{done, ends}) }

func (d *allDone) isDone() bool {
	return !slices.ContainsFunc(d.parts, func(p donePart) bool { return !closed(p.done) })
}

// Name is for logs.
func (d *allDone) Name() string { return d.name }

// Done returns the same channel at every call.
func (d *allDone) Done() <-chan struct{} {
	switch {
	case len(d.parts) == 1:
		return d.parts[0].done
	case d.isDone():
		d.close()
	default:
		d.waits.Do(func() { go d.wait() })
	}
	return d.all
}

func (d *allDone) close() { d.closes.Do(func() { close(d.all) }) }

func (d *allDone) wait() {
	for _, p := range d.parts {
		select {
		case <-p.done:
		case <-p.ends:
		case <-d.stopped:
		case <-d.removed:
		}
	}
	if d.isDone() {
		d.close()
	}
}
