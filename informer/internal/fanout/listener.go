package fanout

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/indexer"
)

// defaultMaxLag is HandlerOptions.MaxLag when that is 0.
const defaultMaxLag = 64

// maxBehind is how many changes a listener may be behind, whatever the number of batches. A busy server makes large
// batches.
const maxBehind = 4096

// minResync is the shortest resync interval.
const minResync = time.Second

// Listener is one registered handler: where it stands in the log, and its delivery.
type Listener[T any] struct {
	handler Handler[T]
	name    string
	// maxLag is how many batches it may be behind; negative: any number.
	maxLag int
	resync time.Duration
	synced chan struct{} // See Registration.synced.
	// gone is closed when nothing will be delivered any more, by whoever sees to that under the fanout's mu.
	gone chan struct{}

	// The fields down to pending are guarded by the fanout's mu.

	// cursor is the link of the log to take next.
	cursor *Batch[T]
	// first is the cache at the time of joining, to be delivered before the log; nil once taken.
	first *Batch[T]
	// buffer stands for first and all of the log when the listener lags; nil otherwise. Invariant: then first is nil
	// and cursor is the end of the log.
	buffer *coalesced[T]
	// last is the link to stop before; nil unless the listener parted.
	last *Batch[T]
	// lag is the number of filled links from cursor on, behind that of the changes in those that concern it.
	lag, behind int
	// served says that a goroutine delivers.
	served   bool
	left     bool
	resyncAt time.Time
	// pending counts all notifications that were ever meant for it less those merged away; taken tells how many
	// were given.
	pending    int64
	mergedAway int64

	// taken and panics are written by the delivering goroutine.
	taken, panics atomic.Int64
	// began is when the delivery of the batch under way began, in Unix nanoseconds, 0 when none is; busy the time
	// all others took. Per batch, not per call: reading the clock costs as much as a small handler.
	began, busy atomic.Int64
	// call is the state of the delivery: see begin.
	call atomic.Uint32
}

// The bits of listener.call.
const (
	calling uint32 = 1 << iota // A call has begun and not ended.
	cutOff                     // No call may begin.
)

func newListener[T any](h Handler[T], o HandlerOptions) *Listener[T] {
	l := &Listener[T]{
		handler: h, name: o.Name, maxLag: o.MaxLag, resync: o.Resync,
		synced: make(chan struct{}), gone: make(chan struct{}),
	}
	if l.maxLag == 0 {
		l.maxLag = defaultMaxLag
	}
	if l.resync > 0 {
		l.resync = max(l.resync, minResync)
	} else {
		l.resync = 0
	}
	return l
}

// lags reports whether l is to leave the log, or has left it.
func (l *Listener[T]) lags() bool {
	return l.buffer != nil || (l.maxLag > 0 && (l.lag > l.maxLag || (l.lag > 1 && l.behind > maxBehind)))
}

// mergeLocked moves all that l has not taken into its coalescing buffer.
func (l *Listener[T]) mergeLocked() {
	if l.buffer == nil {
		l.buffer = newCoalesced[T]()
	}
	fold := func(b *Batch[T]) {
		away := l.buffer.fold(b)
		l.mergedAway += away
		l.pending -= away
	}
	if l.first != nil {
		fold(l.first)
		l.first = nil
	}
	for ; l.cursor.next != nil; l.cursor = l.cursor.next {
		if l.cursor.concerns(l) {
			fold(l.cursor)
		}
	}
	l.lag, l.behind = 0, 0
}

// nextLocked takes what is to be delivered next; false when there is nothing.
func (l *Listener[T]) nextLocked() (delivery[T], bool) {
	if b := l.first; b != nil {
		l.first = nil
		return b.delivery(), true
	}
	if m := l.buffer; m != nil {
		l.buffer = nil
		return m.batch().delivery(), true
	}
	for l.cursor.next != nil && l.cursor != l.last {
		b := l.cursor
		l.cursor = b.next
		l.lag--
		if b.concerns(l) {
			l.behind -= len(b.Changes)
			return b.delivery(), true
		}
	}
	return delivery[T]{}, false
}

// leave marks that nothing will be delivered any more.
func (l *Listener[T]) leave() {
	if !l.left {
		l.left = true
		close(l.gone)
	}
}

func (l *Listener[T]) markSynced() {
	select {
	case <-l.synced:
	default:
		close(l.synced)
	}
}

// deliver calls the handler. It returns false when l was cut off: before the call, which then does not happen, or
// during it.
func (l *Listener[T]) deliver(c *indexer.Change[T], policy PanicPolicy, log klog.Logger) bool {
	if !l.call.CompareAndSwap(0, calling) {
		return false
	}
	l.taken.Add(1)
	l.guarded(c, policy, log)
	return l.call.CompareAndSwap(calling, 0)
}

// ended adds up the time that a batch took.
func (l *Listener[T]) ended() {
	l.busy.Add(time.Now().UnixNano() - l.began.Swap(0))
}

// cut keeps calls from beginning, and reports whether one is running.
func (l *Listener[T]) cut() (running bool) {
	return l.call.Or(cutOff)&calling != 0
}

// guarded makes the call under the panic policy.
func (l *Listener[T]) guarded(c *indexer.Change[T], policy PanicPolicy, log klog.Logger) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		l.panics.Add(1)
		log.Error(fmt.Errorf("panic: %v", r), "Event handler panicked", "handler", l.name, "object", c.Key,
			"stack", string(debug.Stack()))
		if policy == CrashOnPanic {
			panic(r)
		}
	}()
	l.tell(c)
}

func (l *Listener[T]) tell(c *indexer.Change[T]) {
	h := &l.handler
	switch c.Type {
	case indexer.ChangeAdd:
		if h.OnAdd != nil {
			h.OnAdd(c.New, c.Initial)
		}
	case indexer.ChangeUpdate, indexer.ChangeResync:
		if h.OnUpdate != nil {
			h.OnUpdate(c.Old, c.New)
		}
	case indexer.ChangeDelete:
		if h.OnDelete != nil {
			h.OnDelete(Deleted[T]{Key: c.Key, Object: c.New, Stale: c.Stale})
		}
	}
}

func (l *Listener[T]) statsLocked() HandlerStats {
	taken := l.taken.Load()
	s := HandlerStats{
		Name: l.name, Delivered: taken, Pending: l.pending - taken, Merged: l.mergedAway,
		Panics: l.panics.Load(), Busy: time.Duration(l.busy.Load()),
	}
	if began := l.began.Load(); began != 0 {
		// not 0, even within the clock's grain, or when that was set back
		s.Running = max(time.Since(time.Unix(0, began)), 1)
		s.Busy += s.Running
	}
	return s
}
