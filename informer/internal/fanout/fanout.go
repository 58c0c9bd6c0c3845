package fanout

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/internal/trace"
)

// Batch holds the changes of one transaction. Batches form a linked list, the log. The batch at its end is empty until
// the next transaction fills it; a handler that has read everything points there, and pins no memory.
type Batch[T any] struct {
	// Changes is immutable once the batch is filled.
	Changes []indexer.Change[T]
	// Synced marks the batch that completes the initial list.
	Synced bool
	// Only restricts the batch to some listeners, for a resync. nil means all.
	Only []*Listener[T]
	// next is nil while this batch is empty. Guarded by the fanout's mu.
	next *Batch[T]
}

func (b *Batch[T]) isFor(l *Listener[T]) bool {
	return b.Only == nil || slices.Contains(b.Only, l)
}

// Fanout delivers every batch to every handler.
//
// Each listener has a cursor in the log, and the garbage collector frees the batches that all cursors have passed. The
// obvious design, a queue and two goroutines per handler, copies each change for each handler and wakes a goroutine
// each time. Here a transaction is appended once for all handlers, and a listener is woken once for everything that has
// accumulated.
//
// A listener that lags by more than maxLag batches leaves the log for a coalescing buffer of its own. So a stuck
// handler holds at most two states per object besides the one in the cache, not the history of the cluster.
type Fanout[T any] struct {
	policy handler.PanicPolicy
	// start is the origin of Listener.began.
	start time.Time

	mu sync.Mutex
	// end is the batch at the end of the log, which is still empty. Never nil.
	end *Batch[T]
	// listeners is in order of registration.
	listeners []*Listener[T]
	// leaving has the listeners that were removed and have still something to deliver.
	leaving []*Listener[T]
	stopped bool
	log     klog.Logger
	// trace and resource are set before the first Publish. trace is nil if tracing is off.
	trace    *trace.Recorder
	resource string

	// serving counts the listeners that are served. One is added only under mu, and only before stopped is set. Stop
	// waits for all of them.
	serving sync.WaitGroup
}

// New returns a Fanout without handlers.
func New[T any](policy handler.PanicPolicy) *Fanout[T] {
	return &Fanout[T]{policy: policy, start: time.Now(), end: &Batch[T]{}, log: klog.Background()}
}

// Begin sets the logger for panics and the trace recorder. Both come from ctx.
func (f *Fanout[T]) Begin(ctx context.Context, resource string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = klog.FromContext(ctx).WithValues("resource", resource)
	f.trace, f.resource = trace.From(ctx), resource
}

// Publish appends b to the log and wakes the listeners that it is for. It leaves one of them, which it returns, to the
// caller, who must call Serve or Wake with it. It returns nil if all of them have goroutines already.
func (f *Fanout[T]) Publish(b Batch[T]) (left *Listener[T]) {
	if f.trace != nil {
		f.record(b.Changes)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil
	}
	*f.end = Batch[T]{Changes: b.Changes, Synced: b.Synced, Only: b.Only, next: &Batch[T]{}}
	f.end = f.end.next
	for _, l := range f.listeners {
		l.lag++
		if b.isFor(l) {
			l.pending += int64(len(b.Changes))
			l.behind += len(b.Changes)
		}
		if l.lags() {
			l.mergeLocked()
		}
		switch {
		case !b.isFor(l) || !f.claimLocked(l):
		case left == nil:
			left = l
		default:
			f.Wake(l)
		}
	}
	return left
}

// claimLocked reports whether l needs a goroutine. If so, the caller must call Serve or Wake.
func (f *Fanout[T]) claimLocked(l *Listener[T]) bool {
	if l.served || f.stopped {
		return false
	}
	l.log, l.served = f.log, true
	f.serving.Add(1)
	return true
}

// Wake serves l on a new goroutine.
func (f *Fanout[T]) Wake(l *Listener[T]) { go f.Serve(l) }

// Serve delivers to l until nothing is left.
func (f *Fanout[T]) Serve(l *Listener[T]) {
	defer func() {
		if r := recover(); r != nil {
			panic(r) // Stop must not return before the process has ended.
		}
		f.serving.Done()
	}()
	for {
		changes, synced, more := f.take(l)
		if !more {
			return
		}
		l.began.Store(max(int64(time.Since(f.start)), 1))
		for i := range changes {
			if !l.deliver(&changes[i], f.policy) {
				l.addBusy()
				f.finish(l)
				return
			}
		}
		l.addBusy()
		if synced {
			l.markSynced()
		}
	}
}

// take returns what the next batch for l has, from first, from the buffer or from the log, and moves l past it. It does
// not return the batch itself: a stuck handler would pin every batch published since. If there is no batch, more is
// false, and take records that l has no goroutine any more.
func (f *Fanout[T]) take(l *Listener[T]) (changes []indexer.Change[T], synced, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := l.first; b != nil {
		l.first = nil
		return b.Changes, b.Synced, true
	}
	if l.buffer != nil {
		b := l.buffer.batch()
		l.buffer = nil
		return b.Changes, b.Synced, true
	}
	for l.cursor.next != nil && l.cursor != l.last {
		b := l.cursor
		l.cursor = b.next
		l.lag--
		if b.isFor(l) {
			l.behind -= len(b.Changes)
			return b.Changes, b.Synced, true
		}
	}
	l.served = false
	if l.last != nil {
		l.finishLocked()
	}
	return nil, false, false
}

// finish is called when the goroutine of l ends because calls were stopped.
func (f *Fanout[T]) finish(l *Listener[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.served = false
	l.finishLocked()
}

// deliver calls the handler, unless calls were stopped. It returns false if they were stopped before or during this
// call.
func (l *Listener[T]) deliver(c *indexer.Change[T], policy handler.PanicPolicy) bool {
	if !l.call.CompareAndSwap(0, calling) {
		return false
	}
	l.taken.Add(1)
	l.callHandler(c, policy)
	return l.call.CompareAndSwap(calling, 0)
}

// callHandler calls the function for c under the panic policy.
func (l *Listener[T]) callHandler(c *indexer.Change[T], policy handler.PanicPolicy) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		l.panics.Add(1)
		l.log.Error(fmt.Errorf("panic: %v", r), "Event handler panicked", "handler", l.name, "object", c.Key,
			"stack", string(debug.Stack()))
		if policy == handler.CrashOnPanic {
			panic(r)
		}
	}()
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
			h.OnDelete(handler.Deleted[T]{Key: c.Key, Object: c.New, Stale: c.Stale})
		}
	}
}

// Stop ends all delivery and waits for running calls to return.
func (f *Fanout[T]) Stop() {
	f.mu.Lock()
	f.stopped = true
	for _, l := range slices.Concat(f.listeners, f.leaving) {
		l.stopCalls()
		if !l.served {
			l.finishLocked()
		}
	}
	f.mu.Unlock()
	f.serving.Wait()
}

// record traces changes before any handler is called for them.
func (f *Fanout[T]) record(changes []indexer.Change[T]) {
	now := time.Now()
	for i := range changes {
		c := &changes[i]
		changed, ok := any(c.New).(metav1.Object)
		if !ok || c.Type == indexer.ChangeResync {
			continue
		}
		var old metav1.Object
		if c.Type != indexer.ChangeAdd {
			old, _ = any(c.Old).(metav1.Object)
		}
		f.trace.Changed(f.resource, trace.FormOf(changed), events[c.Type], c.Initial, old, changed, now)
	}
}

var events = [...]string{indexer.ChangeAdd: "Add", indexer.ChangeUpdate: "Update", indexer.ChangeDelete: "Delete"}
