package deltafifo

import (
	"context"
	"sync"
)

// Limit is how many deltas may be queued before Push waits. It is large enough that the reflector does not stop for
// one transaction, and small enough that a stuck consumer costs megabytes, not all memory.
const Limit = 4096

// DeltaFIFO is an ordered log of deltas between the reflector, which appends, and one consumer, which takes
// everything queued in one step. It is not the DeltaFIFO of client-go, which keeps a queue of keys with a list of
// deltas for each: it merges the deltas of a key, and loses the order between keys. It is nearer to client-go's
// RealFIFO, an ordered log too, whose consumer takes one delta at a time or a batch of bounded size.
//
// The log is ordered, and merges nothing, for three reasons. The cache then passes through the states that the
// server had, so one resource version says how far it has come. Appending costs no map and no key. And only a
// handler that lags needs merging, so it is done there, for that handler alone.
//
// Taking all at once makes the batches: while one is applied, the next fills, and the busier the server, the larger
// they get.
//
// Concurrency: any number of producers, one consumer.
//
// Source: DeltaFIFO and RealFIFO in k8s.io/client-go/tools/cache v0.37.2.
type DeltaFIFO[T any] struct {
	mu sync.Mutex
	// queued is the log. Invariant: len(queued) <= Limit.
	queued []Delta[T]
	// spare is an empty array for the next log, so that a steady stream allocates nothing.
	spare []Delta[T]
	// taken is how many deltas the consumer took and has not come back from yet.
	taken int
	// ready has capacity 1 and holds a token whenever something is queued that the consumer was not told of. Sent to
	// by producers under mu, received by the consumer, never closed.
	ready chan struct{}
	// room is nil unless a producer waits. Made by the first that waits, closed by the consumer's Take; nothing is
	// sent.
	room chan struct{}
}

// New returns an empty log.
func New[T any]() *DeltaFIFO[T] {
	return &DeltaFIFO[T]{ready: make(chan struct{}, 1)}
}

// Push appends d. While the log is full it waits: that is the back-pressure of the pipeline, down to the connection.
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

// tryPush appends d, or returns the channel that is closed when trying again makes sense.
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
	select {
	case f.ready <- struct{}{}:
	default:
	}
	return nil
}

// Ready has a token when something may be queued. Receive, then [DeltaFIFO.Take].
func (f *DeltaFIFO[T]) Ready() <-chan struct{} { return f.ready }

// Take hands over everything queued, in order; nil when nothing is. done is the batch taken before. The log uses its
// array again; nil keeps the array.
func (f *DeltaFIFO[T]) Take(done []Delta[T]) []Delta[T] {
	clear(done) // An array in reserve must not keep objects alive.
	f.mu.Lock()
	defer f.mu.Unlock()
	if done != nil {
		f.spare = done[:0]
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

// Pending is the number of deltas that the consumer is not done with: those queued, and those that it took, until it
// comes back for more.
func (f *DeltaFIFO[T]) Pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queued) + f.taken
}

// Len is the number of deltas queued.
func (f *DeltaFIFO[T]) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queued)
}
