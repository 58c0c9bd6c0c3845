package informer

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/indexer"
)

// batch is what one transaction changed: a link of the log that all handlers read. The link at the end of the log is
// empty, to be filled by the next transaction: a handler that has read all stands there, and pins nothing.
type batch[T any] struct {
	// changes is never changed once the batch is filled.
	changes []indexer.Change[T]
	// synced says that whoever has been told these changes has been told the whole initial list.
	synced bool
	// only restricts the batch to some listeners (a resync); nil is all.
	only []*listener[T]
	// next is the link after this one; nil as long as this one is empty. Guarded by the fanout's mu.
	next *batch[T]
}

func (b *batch[T]) concerns(l *listener[T]) bool {
	return b.only == nil || slices.Contains(b.only, l)
}

// delivery is a batch off the log. A handler that is stuck in it holds these changes; had it the link, it would hold all links
// that came after.
type delivery[T any] struct {
	changes []indexer.Change[T]
	synced  bool
}

func (b *batch[T]) delivery() delivery[T] { return delivery[T]{b.changes, b.synced} }

// fanout gives every batch to every handler.
//
// The batches form a linked list; each listener has a cursor in it, and the garbage collector frees what all have passed. The
// obvious design, a queue and two goroutines per handler, copies every change for each handler and wakes it for each change. Here
// publishing costs one append for all, and a listener is woken once for as much as has come.
//
// A listener more than its maxLag batches behind leaves the list for a [merged] of its own, so that a handler that is stuck
// holds one state per object, not the history of the cluster.
type fanout[T any] struct {
	policy PanicPolicy

	mu sync.Mutex
	// open is the end of the log: the link that is not filled yet. Never nil.
	open *batch[T]
	// listeners is in order of registration.
	listeners []*listener[T]
	stopped   bool
	log       klog.Logger

	// serving has one goroutine for each listener that has something to deliver. Added to under mu, and never once
	// stopped; waited for by stop.
	serving sync.WaitGroup
}

func newFanout[T any](policy PanicPolicy) *fanout[T] {
	return &fanout[T]{policy: policy, open: &batch[T]{}, log: klog.Background()}
}

// join adds a listener. It is told of first, the cache as it is, then of every batch published after this call. The caller
// keeps the cache from moving between the two.
func (f *fanout[T]) join(l *listener[T], first *batch[T]) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return ErrStopped
	}
	l.name = f.freeLocked(l.name)
	l.cursor, l.first = f.open, first
	l.pending = int64(len(first.changes))
	f.listeners = append(f.listeners, l)
	if first.synced || len(first.changes) > 0 {
		f.wakeLocked(l)
	}
	return nil
}

// freeLocked is name, or, where a listener has that, name with a number: metrics tell handlers apart by it.
func (f *fanout[T]) freeLocked(name string) string {
	free := name
	for n := 2; slices.ContainsFunc(f.listeners, func(l *listener[T]) bool { return l.name == free }); n++ {
		free = name + "-" + strconv.Itoa(n)
	}
	return free
}

// publish appends b to the log and wakes whom it concerns.
func (f *fanout[T]) publish(b batch[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return
	}
	*f.open = batch[T]{changes: b.changes, synced: b.synced, only: b.only, next: &batch[T]{}}
	f.open = f.open.next
	for _, l := range f.listeners {
		l.lag++
		if b.concerns(l) {
			l.pending += int64(len(b.changes))
			l.behind += len(b.changes)
		}
		if l.late() {
			l.mergeLocked()
		}
		if b.concerns(l) {
			f.wakeLocked(l)
		}
	}
}

// wakeLocked sees to it that l has a goroutine.
func (f *fanout[T]) wakeLocked(l *listener[T]) {
	if l.served || f.stopped {
		return
	}
	l.served = true
	log := f.log
	f.serving.Go(func() { f.serve(l, log) })
}

// serve delivers until nothing is left, and ends.
func (f *fanout[T]) serve(l *listener[T], log klog.Logger) {
	for {
		d, more := f.take(l)
		if !more {
			return
		}
		l.began.Store(time.Now().UnixNano())
		for i := range d.changes {
			if !l.deliver(&d.changes[i], f.policy, log) {
				l.ended()
				f.left(l)
				return
			}
		}
		l.ended()
		if d.synced {
			l.markSynced()
		}
	}
}

// take moves l's cursor over what it is to deliver next; false when there is nothing, and then l has no goroutine any more.
func (f *fanout[T]) take(l *listener[T]) (delivery[T], bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d, more := l.nextLocked(); more {
		return d, true
	}
	l.served = false
	if l.last != nil {
		l.leave()
	}
	return delivery[T]{}, false
}

// left notes that the goroutine of l ended because it was cut off.
func (f *fanout[T]) left(l *listener[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.served = false
	l.leave()
}

// part takes l off the log: nothing published from now on reaches it. It returns false when it already had parted.
func (f *fanout[T]) part(l *listener[T]) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.listeners, l)
	if i < 0 {
		return false
	}
	f.listeners = slices.Delete(f.listeners, i, i+1)
	l.last = f.open
	if !l.served {
		l.leave()
	}
	return true
}

// undelivered counts what l was not told.
func (f *fanout[T]) undelivered(l *listener[T]) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return l.pending - l.taken.Load()
}

// stop ends all delivery and waits for the calls that are running.
func (f *fanout[T]) stop() {
	f.mu.Lock()
	f.stopped = true
	for _, l := range f.listeners {
		l.cut()
		if !l.served {
			l.leave()
		}
	}
	f.mu.Unlock()
	f.serving.Wait()
}

// dueResync returns the listeners whose resync is due at now, and when the next is; the zero time when none ever is. Those
// returned are taken to be served.
func (f *fanout[T]) dueResync(now time.Time) (due []*listener[T], next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.listeners {
		if l.resync == 0 {
			continue
		}
		if l.resyncAt.IsZero() {
			l.resyncAt = now.Add(l.resync)
		}
		if !l.resyncAt.After(now) {
			due = append(due, l)
			l.resyncAt = now.Add(l.resync)
		}
		if next.IsZero() || l.resyncAt.Before(next) {
			next = l.resyncAt
		}
	}
	return due, next
}

// begin gives the log that panics are written to.
func (f *fanout[T]) begin(log klog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = log
}

// statsOf returns what l was given.
func (f *fanout[T]) statsOf(l *listener[T]) HandlerStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return l.statsLocked()
}

// stats returns what each listener was given.
func (f *fanout[T]) stats() []HandlerStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]HandlerStats, 0, len(f.listeners))
	for _, l := range f.listeners {
		all = append(all, l.statsLocked())
	}
	return all
}
