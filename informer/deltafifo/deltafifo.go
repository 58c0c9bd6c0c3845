package deltafifo

import (
	"context"
	"sync"
)

// Limit is how many deltas may be queued before Push waits. It is large enough that the reflector need not wait for a
// single transaction, and small enough that a stuck consumer costs megabytes, not all memory.
const Limit = 4096

// DeltaFIFO is an ordered log of deltas. The reflector appends to it, and one consumer takes everything queued in one
// step. It is not the DeltaFIFO of client-go, a queue of keys with a list of deltas for each, which loses the order
// between keys. It is nearer to client-go's RealFIFO, which is also an ordered log; but a consumer of that takes one
// delta at a time, or a batch of bounded size.
//
// The log merges nothing, for three reasons. The cache then goes through the states that the server had, so a single
// resource version says how far it has come. Appending needs no map and no key. And only a handler that lags needs
// merging, so the fan-out does it for that handler alone.
//
// Batches form by themselves: while one is applied, the next one fills. The busier the server, the larger they get.
//
// Concurrency: any number of producers, one consumer at a time.
//
// Source: DeltaFIFO and RealFIFO in k8s.io/client-go/tools/cache v0.37.2.
type DeltaFIFO[T any] struct {
	mu sync.Mutex
	// queued is the log. Invariant: len(queued) <= Limit.
	queued []Delta[T]
	// spare is an empty slice for the next batch, so that a steady stream does not allocate.
	spare []Delta[T]
	// taken is the size of the batch that the consumer is working on.
	taken int
	// ready has a token if something was queued, or Wake was called, since the last Take. Producers send under mu, the
	// consumer and Take receive, it is never closed. Capacity 1.
	ready chan struct{}
	// next starts another consumer. It is nil unless the consumer has left.
	next func()
	// room is nil unless a producer waits. The first producer to wait makes it, and the consumer's Take closes it.
	// Nothing is sent.
	room chan struct{}
}

// New returns an empty log.
func New[T any]() *DeltaFIFO[T] {
	return &DeltaFIFO[T]{ready: make(chan struct{}, 1)}
}

// Push appends d. While the log is full it waits, so a slow consumer slows down the reflector and its connection.
//
// Errors: ctx's.
func (f *DeltaFIFO[T]) Push(ctx context.Context, d Delta[T]) error {
	for {
		room := f.tryPush(d)
		if room == nil {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryPush appends d. If the log is full it returns a channel that is closed when there is room again.
func (f *DeltaFIFO[T]) tryPush(d Delta[T]) (room <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queued) >= Limit {
		if f.room == nil {
			f.room = make(chan struct{})
		}
		return f.room
	}
	f.queued = append(f.queued, d)
	f.wakeLocked()
	return nil
}

// Wake makes the consumer look at the log, and at whatever else it looks after, although nothing was queued.
func (f *DeltaFIFO[T]) Wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wakeLocked()
}

func (f *DeltaFIFO[T]) wakeLocked() {
	if next := f.next; next != nil {
		f.next = nil
		next()
		return
	}
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// Leave is called by a consumer that has something else to do, which may take long. If something was queued or Wake was
// called since it last called Take, Leave returns false. Otherwise the next [DeltaFIFO.Push] or [DeltaFIFO.Wake] calls
// next, which starts another consumer, unless this one has returned by then. next must not call methods of the log.
func (f *DeltaFIFO[T]) Leave(next func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queued) > 0 || len(f.ready) > 0 {
		return false
	}
	f.next = next
	return true
}

// Return is called by a consumer that has left. It returns false if there is another one.
func (f *DeltaFIFO[T]) Return() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	returned := f.next != nil
	f.next = nil
	return returned
}

// Ready returns a channel that has a token when something may be queued. Receive from it, then call [DeltaFIFO.Take].
func (f *DeltaFIFO[T]) Ready() <-chan struct{} { return f.ready }

// Take returns everything queued, in order; nil if nothing is. done is the previous batch, whose array the log reuses;
// it may be nil.
func (f *DeltaFIFO[T]) Take(done []Delta[T]) []Delta[T] {
	clear(done) // A spare array must not keep objects alive.
	f.mu.Lock()
	defer f.mu.Unlock()
	if done != nil {
		f.spare = done[:0]
	}
	select {
	case <-f.ready: // The token was for what is taken now.
	default:
	}
	f.taken = len(f.queued)
	if f.taken == 0 {
		return nil
	}
	batch := f.queued
	f.queued, f.spare = f.spare, nil
	if f.room != nil {
		close(f.room)
		f.room = nil
	}
	return batch
}

// Pending returns the number of deltas that are not applied yet: those queued, and those in the batch that the consumer
// took last, until it calls Take again.
func (f *DeltaFIFO[T]) Pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queued) + f.taken
}

// Len returns the number of queued deltas.
func (f *DeltaFIFO[T]) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queued)
}
