package fanout

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/internal/closed"
)

// defaultMaxLag is used when [handler.Options].MaxLag is 0.
const defaultMaxLag = 64

// maxBehind is how many changes a listener may be behind, in two or more batches. MaxLag alone would not bound them,
// because a busy server makes large batches.
const maxBehind = 4096

// minResync is the shortest resync interval.
const minResync = time.Second

// Listener is one registered handler with its place in the log. It is the [handler.Registration] that users get.
type Listener[T any] struct {
	fan     *Fanout[T]
	handler handler.Handler[T]
	name    string
	// maxLag is how many batches the listener may be behind; negative means any number.
	maxLag int
	// resync is the interval; zero or less means no resync.
	resync time.Duration
	// synced is closed by the goroutine that serves the listener, after the last call for the initial list. Never sent
	// on.
	synced chan struct{}
	// done is closed by finishLocked. Never sent on.
	done chan struct{}

	// The fields from here to mergedAway are guarded by the fanout's mu.

	// cursor is the batch in the log to take next.
	cursor *Batch[T]
	// first is the content of the cache when the listener joined. It comes before the log; nil once taken.
	first *Batch[T]
	// buffer replaces first and the log while the listener lags; otherwise nil. Invariant: while it is set, first is
	// nil and cursor is the end of the log.
	buffer *coalesced[T]
	// last is the batch to stop before; nil unless the listener was removed.
	last *Batch[T]
	// lag is the number of filled batches from cursor on. behind counts the changes in those of them that are for this
	// listener.
	lag, behind int
	// served is true while a goroutine delivers to the listener.
	served bool
	// finished is true when done is closed.
	finished bool
	resyncAt time.Time
	// pending counts all changes ever published to the listener, minus the calls that merging saved. mergedAway counts
	// those. What the listener has not received yet is pending minus taken.
	pending    int64
	mergedAway int64

	// log is set before served becomes true, and read by the goroutine that delivers.
	log klog.Logger
	// taken counts the calls of the handler, and panics those that panicked. The delivering goroutine writes both.
	taken, panics atomic.Int64
	// began is when the delivery of the current batch began, in nanoseconds since Fanout.start; 0 between deliveries.
	// busy is the time that all earlier deliveries took. Both are measured once a batch, because reading the clock
	// costs as much as a small handler.
	began, busy atomic.Int64
	// call holds the bits calling and stopped.
	call atomic.Uint32
}

const (
	calling uint32 = 1 << iota // A call has begun and has not returned.
	stopped                    // No call may begin.
)

func newListener[T any](f *Fanout[T], h handler.Handler[T], o handler.Options) *Listener[T] {
	l := &Listener[T]{
		fan: f, handler: h, name: o.Name, maxLag: o.MaxLag, resync: o.Resync,
		synced: make(chan struct{}), done: make(chan struct{}),
	}
	l.maxLag = cmp.Or(l.maxLag, defaultMaxLag)
	if l.resync > 0 {
		l.resync = max(l.resync, minResync)
	}
	return l
}

// Join registers a handler. The handler first receives the current contents of the cache (first), then every batch
// published after Join returns. The caller keeps the cache from changing between reading first and the return.
//
// Errors: [handler.ErrStopped].
func (f *Fanout[T]) Join(h handler.Handler[T], o handler.Options, first Batch[T]) (*Listener[T], error) {
	l := newListener(f, h, o)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil, handler.ErrStopped
	}
	l.name = f.uniqueNameLocked(l.name)
	l.cursor, l.first = f.end, &first
	l.pending = int64(len(first.Changes))
	f.listeners = append(f.listeners, l)
	if (first.Synced || len(first.Changes) > 0) && f.claimLocked(l) {
		f.Wake(l)
	}
	return l, nil
}

// uniqueNameLocked returns name, with a number appended if another listener has it: metrics are labelled by name.
func (f *Fanout[T]) uniqueNameLocked(name string) string {
	unique := name
	for n := 2; slices.ContainsFunc(f.listeners, func(l *Listener[T]) bool { return l.name == unique }); n++ {
		unique = name + "-" + strconv.Itoa(n)
	}
	return unique
}

// Remove removes the handler that r registers, whatever its object type. See informer.Informer.RemoveHandler.
func Remove(ctx context.Context, r handler.Registration) error {
	l, ok := r.(interface {
		remove(ctx context.Context) error
	})
	if !ok {
		return errors.New("the registration was not returned by AddHandler")
	}
	return l.remove(ctx)
}

// remove takes l off the log. It then waits until everything that was published before is delivered, until ctx is done,
// or until the fanout stops.
//
// Errors: a [handler.UndeliveredError].
func (l *Listener[T]) remove(ctx context.Context) error {
	if !l.detach() {
		return nil
	}
	select {
	case <-l.done:
	case <-ctx.Done():
	}
	running := l.stopCalls()
	l.fan.mu.Lock()
	count := l.pending - l.taken.Load()
	l.fan.mu.Unlock()
	if count == 0 && !running {
		return nil
	}
	return &handler.UndeliveredError{
		Handler: l.name, Count: count, Running: running, Err: cmp.Or(ctx.Err(), handler.ErrStopped),
	}
}

// detach keeps later batches from reaching l. It returns false if l was already removed.
func (l *Listener[T]) detach() bool {
	f := l.fan
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.listeners, l)
	if i < 0 {
		return false
	}
	f.listeners = slices.Delete(f.listeners, i, i+1)
	f.leaving = append(f.leaving, l)
	l.last = f.end
	if !l.served {
		l.finishLocked()
	}
	return true
}

// stopCalls keeps further calls from beginning, and reports whether one is running.
func (l *Listener[T]) stopCalls() (running bool) {
	return l.call.Or(stopped)&calling != 0
}

// finishLocked records that nothing will be delivered to l any more.
func (l *Listener[T]) finishLocked() {
	if !l.finished {
		l.finished = true
		l.fan.leaving = slices.DeleteFunc(l.fan.leaving, func(other *Listener[T]) bool { return other == l })
		close(l.done)
	}
}

// lags reports whether l must leave the log, or has left it already.
func (l *Listener[T]) lags() bool {
	return l.buffer != nil || (l.maxLag > 0 && (l.lag > l.maxLag || (l.lag > 1 && l.behind > maxBehind)))
}

// mergeLocked moves everything that l has not taken yet into its coalescing buffer.
func (l *Listener[T]) mergeLocked() {
	if l.buffer == nil {
		l.buffer = newCoalesced[T]()
	}
	merge := func(b *Batch[T]) {
		saved := l.buffer.merge(b)
		l.mergedAway += saved
		l.pending -= saved
	}
	if l.first != nil {
		merge(l.first)
		l.first = nil
	}
	for ; l.cursor.next != nil; l.cursor = l.cursor.next {
		if l.cursor.isFor(l) {
			merge(l.cursor)
		}
	}
	l.lag, l.behind = 0, 0
}

// DueResync returns the listeners whose resync is due, and the time of the next resync. That time is zero if no
// listener has a resync. It schedules the next resync of the listeners that it returns.
func (f *Fanout[T]) DueResync() (due []*Listener[T], next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var now time.Time
	for _, l := range f.listeners {
		if l.resync <= 0 {
			continue
		}
		if now.IsZero() { // Most informers have no resync, and the clock is read after each batch.
			now = time.Now()
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

// Name implements [handler.Registration].
func (l *Listener[T]) Name() string { return l.name }

// HasSynced implements [handler.Registration].
func (l *Listener[T]) HasSynced() bool { return closed.Is(l.synced) }

// Synced implements [handler.Registration].
func (l *Listener[T]) Synced() <-chan struct{} { return l.synced }

func (l *Listener[T]) markSynced() {
	if !l.HasSynced() {
		close(l.synced)
	}
}

// Done implements [handler.Registration].
func (l *Listener[T]) Done() <-chan struct{} { return l.done }

// Stats implements [handler.Registration].
func (l *Listener[T]) Stats() handler.Stats {
	l.fan.mu.Lock()
	defer l.fan.mu.Unlock()
	return l.statsLocked()
}

// Stats returns the counters of each handler, in order of registration.
func (f *Fanout[T]) Stats() []handler.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]handler.Stats, 0, len(f.listeners))
	for _, l := range f.listeners {
		all = append(all, l.statsLocked())
	}
	return all
}

func (l *Listener[T]) statsLocked() handler.Stats {
	taken := l.taken.Load()
	s := handler.Stats{
		Name: l.name, Delivered: taken, Pending: l.pending - taken, Merged: l.mergedAway,
		Panics: l.panics.Load(), Busy: time.Duration(l.busy.Load()),
	}
	if began := l.began.Load(); began != 0 {
		s.Running = max(time.Since(l.fan.start)-time.Duration(began), 1) // The clock may be coarse.
		s.Busy += s.Running
	}
	return s
}

// addBusy adds the time that the current batch took.
func (l *Listener[T]) addBusy() {
	l.busy.Add(int64(time.Since(l.fan.start)) - l.began.Swap(0))
}
