package informer

import (
	"context"
	"sync"
)

// DeltaType is what a [Delta] says.
type DeltaType int

// The types of deltas.
const (
	// DeltaUpsert is a new state of one object: an ADDED or MODIFIED event. Which of the two it was says nothing about
	// the cache, so it is not kept: the cache decides.
	DeltaUpsert DeltaType = iota
	// DeltaDelete is the last state of one object.
	DeltaDelete
	// DeltaReplace is everything there is: a complete list. What it does not hold is gone.
	DeltaReplace
	// DeltaBookmark moves the watermark, and nothing else.
	DeltaBookmark
	// DeltaResync repeats the cache to those handlers whose resync is due.
	DeltaResync
)

func (t DeltaType) String() string {
	switch t {
	case DeltaUpsert:
		return "Upsert"
	case DeltaDelete:
		return "Delete"
	case DeltaReplace:
		return "Replace"
	case DeltaBookmark:
		return "Bookmark"
	case DeltaResync:
		return "Resync"
	default:
		return "Unknown"
	}
}

// Delta is one thing learnt about the resource.
type Delta[T any] struct {
	Type DeltaType
	// Object is set for Upsert and Delete.
	Object T
	// Objects is set for Replace. The receiver owns the slice.
	Objects []T
	// Unreadable are objects in a state that could not be decoded: of a Replace those that are there beside Objects, of an Upsert or
	// Delete the one that stands for Object. The cache keeps what it has of them while they exist.
	Unreadable []*DecodeError
	// ResourceVersion is the position in the server's history after this delta; "" for Resync.
	ResourceVersion string
	// Scope numbers the reflector it came from; see [Indexer].Apply. An informer of one reflector uses 0.
	Scope int
	// Accept says what the cache does with states that are not later than its own.
	Accept Acceptance
	// History is set for Replace: the number of the server's history that it is of; see [Informer].History.
	History int64
}

// Acceptance says which states a cache takes over its own.
type Acceptance uint8

const (
	// AcceptLater takes only later states: what watches and lists bring, servers being what they are.
	AcceptLater Acceptance = iota
	// AcceptEarlier takes earlier ones, too: for the Replace after the server's history went back.
	AcceptEarlier
	// AcceptAll takes every state without comparing: for who writes into the cache himself.
	AcceptAll
)

// fifoLimit is how many deltas may be queued before Push waits. It is large enough that the reflector does not stop for
// one transaction, and small enough that a stuck consumer costs megabytes, not all memory.
const fifoLimit = 4096

// DeltaFIFO is an ordered log of deltas between the reflector, which appends, and one consumer, which takes everything
// queued in one step.
//
// Order is kept across objects, and nothing is merged: merging is the business of slow handlers, not of the log. Taking all at
// once is what makes batches: while one is applied, the next fills, and the busier the server, the larger they get.
//
// Concurrency: any number of producers, one consumer.
type DeltaFIFO[T any] struct {
	mu sync.Mutex
	// queued is the log. Invariant: len(queued) <= fifoLimit.
	queued []Delta[T]
	// spare is an empty array for the next log, so that a steady stream allocates nothing.
	spare []Delta[T]
	// taken is how many deltas the consumer took and has not come back from yet.
	taken int
	// ready has capacity 1 and holds a token whenever something is queued that the consumer was not told of. Sent to
	// by producers under mu, received by the consumer, never closed.
	ready chan struct{}
	// room is nil unless a producer waits. Made by the first that waits, closed by the consumer's Take; nothing is sent.
	room chan struct{}
}

// NewDeltaFIFO returns an empty log.
func NewDeltaFIFO[T any]() *DeltaFIFO[T] {
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
	if len(f.queued) >= fifoLimit {
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

// Take hands over everything queued, in order; nil when nothing is. done is the batch taken before, whose array the log uses
// again; nil to keep it.
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

// Pop waits until something is queued and takes it all. done is as for [DeltaFIFO.Take].
//
// Errors: ctx's.
func (f *DeltaFIFO[T]) Pop(ctx context.Context, done []Delta[T]) ([]Delta[T], error) {
	for {
		if batch := f.Take(done); batch != nil {
			return batch, nil
		}
		done = nil
		select {
		case <-f.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Pending is the number of deltas that the consumer is not done with: those queued, and those it took until it comes back for more.
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
