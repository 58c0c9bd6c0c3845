package fanout

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/internal/trace"
)

// ErrStopped reports that the informer has ended: no handler is told anything any more.
var ErrStopped = errors.New("informer has stopped")

// Batch is what one transaction changed: a link of the log that all handlers read. The link at the end of the log is
// empty, to be filled by the next transaction: a handler that has read all stands there, and pins nothing.
type Batch[T any] struct {
	// Changes is never changed once the batch is filled.
	Changes []indexer.Change[T]
	// Synced says that whoever has been told these changes has been told the whole initial list.
	Synced bool
	// Only restricts the batch to some listeners (a resync); nil is all.
	Only []*Listener[T]
	// next is the link after this one; nil as long as this one is empty. Guarded by the fanout's mu.
	next *Batch[T]
}

func (b *Batch[T]) concerns(l *Listener[T]) bool {
	return b.Only == nil || slices.Contains(b.Only, l)
}

// delivery is a batch off the log. A handler that is stuck in it holds these changes; had it the link, it would
// hold all links that came after.
type delivery[T any] struct {
	changes []indexer.Change[T]
	synced  bool
}

func (b *Batch[T]) delivery() delivery[T] { return delivery[T]{b.Changes, b.Synced} }

// Fanout gives every batch to every handler.
//
// The batches form a linked list; each listener has a cursor in it, and the garbage collector frees what all have
// passed. The obvious design, a queue and two goroutines per handler, copies every change for each handler and
// wakes it for each change. Here publishing costs one append for all, and a listener is woken once for as much as
// has come.
//
// A listener more than its maxLag batches behind leaves the list for a coalescing buffer of its own, so that a
// handler that is stuck holds one state per object, not the history of the cluster.
type Fanout[T any] struct {
	policy PanicPolicy

	mu sync.Mutex
	// open is the end of the log: the link that is not filled yet. Never nil.
	open *Batch[T]
	// listeners is in order of registration.
	listeners []*Listener[T]
	stopped   bool
	log       klog.Logger
	// trace is nil if nobody wants to know. It and resource are set before the first Publish.
	trace    *trace.Recorder
	resource string

	// serving has one goroutine for each listener that has something to deliver. Added to under mu, and never once
	// stopped; waited for by stop.
	serving sync.WaitGroup
}

// New returns a fan-out without handlers.
func New[T any](policy PanicPolicy) *Fanout[T] {
	return &Fanout[T]{policy: policy, open: &Batch[T]{}, log: klog.Background()}
}

// Join adds a handler. It is told of first, the cache as it is, then of every batch published after this call. The
// caller keeps the cache from moving between the two.
//
// Errors: [ErrStopped].
func (f *Fanout[T]) Join(h Handler[T], o HandlerOptions, first Batch[T]) (*Registration, error) {
	l := newListener(h, o)
	if err := f.add(l, &first); err != nil {
		return nil, err
	}
	return &Registration{
		name:   l.name,
		synced: l.synced,
		gone:   l.gone,
		remove: func(ctx context.Context) error { return f.remove(ctx, l) },
		stats:  func() HandlerStats { return f.statsOf(l) },
	}, nil
}

func (f *Fanout[T]) add(l *Listener[T], first *Batch[T]) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return ErrStopped
	}
	l.name = f.freeLocked(l.name)
	l.cursor, l.first = f.open, first
	l.pending = int64(len(first.Changes))
	f.listeners = append(f.listeners, l)
	if first.Synced || len(first.Changes) > 0 {
		f.wakeLocked(l)
	}
	return nil
}

// remove takes l off the log, and waits until it was told all that happened before, or ctx ends.
//
// Errors: an [UndeliveredError].
func (f *Fanout[T]) remove(ctx context.Context, l *Listener[T]) error {
	if !f.part(l) {
		return nil
	}
	select {
	case <-l.gone:
	default:
		select {
		case <-l.gone:
		case <-ctx.Done():
		}
	}
	running := l.cut()
	count := f.undelivered(l)
	if count == 0 && !running {
		return nil
	}
	err := ctx.Err()
	if err == nil {
		err = ErrStopped
	}
	return &UndeliveredError{Handler: l.name, Count: count, Running: running, Err: err}
}

// freeLocked is name, or, where a listener has that, name with a number: metrics tell handlers apart by it.
func (f *Fanout[T]) freeLocked(name string) string {
	free := name
	for n := 2; slices.ContainsFunc(f.listeners, func(l *Listener[T]) bool { return l.name == free }); n++ {
		free = name + "-" + strconv.Itoa(n)
	}
	return free
}

// Publish appends b to the log and wakes whom it concerns.
func (f *Fanout[T]) Publish(b Batch[T]) {
	if f.trace != nil {
		f.record(b.Changes)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return
	}
	*f.open = Batch[T]{Changes: b.Changes, Synced: b.Synced, Only: b.Only, next: &Batch[T]{}}
	f.open = f.open.next
	for _, l := range f.listeners {
		l.lag++
		if b.concerns(l) {
			l.pending += int64(len(b.Changes))
			l.behind += len(b.Changes)
		}
		if l.lags() {
			l.mergeLocked()
		}
		if b.concerns(l) {
			f.wakeLocked(l)
		}
	}
}

// wakeLocked sees to it that l has a goroutine.
func (f *Fanout[T]) wakeLocked(l *Listener[T]) {
	if l.served || f.stopped {
		return
	}
	l.served = true
	log := f.log
	f.serving.Go(func() { f.serve(l, log) })
}

// serve delivers until nothing is left, and ends.
func (f *Fanout[T]) serve(l *Listener[T], log klog.Logger) {
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

// take moves l's cursor over what it is to deliver next; false when there is nothing, and then l has no goroutine
// any more.
func (f *Fanout[T]) take(l *Listener[T]) (delivery[T], bool) {
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
func (f *Fanout[T]) left(l *Listener[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.served = false
	l.leave()
}

// part takes l off the log: nothing published from now on reaches it. It returns false when it already had parted.
func (f *Fanout[T]) part(l *Listener[T]) bool {
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
func (f *Fanout[T]) undelivered(l *Listener[T]) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return l.pending - l.taken.Load()
}

// Stop ends all delivery and waits for the calls that are running.
func (f *Fanout[T]) Stop() {
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

// DueResync returns the listeners whose resync is due at now, and when the next is; the zero time when none ever
// is. Those returned are taken to be served.
func (f *Fanout[T]) DueResync(now time.Time) (due []*Listener[T], next time.Time) {
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

// Begin gives the context whose logger panics are written to, and whose trace.Recorder is told of each change.
func (f *Fanout[T]) Begin(ctx context.Context, resource string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = klog.FromContext(ctx).WithValues("resource", resource)
	f.trace, f.resource = trace.From(ctx), resource
}

// record tells the Recorder of changes, before any handler hears of them.
func (f *Fanout[T]) record(changes []indexer.Change[T]) {
	form, now := trace.FormOf[T](), time.Now()
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
		f.trace.Changed(f.resource, form, events[c.Type], c.Initial, old, changed, now)
	}
}

var events = [...]string{indexer.ChangeAdd: "Add", indexer.ChangeUpdate: "Update", indexer.ChangeDelete: "Delete"}

// statsOf returns what l was given.
func (f *Fanout[T]) statsOf(l *Listener[T]) HandlerStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return l.statsLocked()
}

// Stats returns what each listener was given.
func (f *Fanout[T]) Stats() []HandlerStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]HandlerStats, 0, len(f.listeners))
	for _, l := range f.listeners {
		all = append(all, l.statsLocked())
	}
	return all
}
