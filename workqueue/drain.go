package workqueue

import (
	"context"
	"fmt"
)

// shutdown is the state of a queue's shutdown.
type shutdown struct {
	// begun reports whether ShutDown or Drain was called. From then on the queue ignores adds.
	begun bool
	// drained is closed to release the Drains that wait: when no key is ready or processing, or by ShutDown. It is nil
	// if no Drain waits.
	drained chan struct{}
}

// ShutDown stops intake: the queue ignores every later add, and drops pending delays. Keys that are ready, or that were
// added again while processing, are still handed out; then Get returns [ErrShutDown]. A waiting Drain gives up.
// ShutDown may be called any number of times. When it returns, no goroutine of the queue is left.
func (q *Queue[K]) ShutDown() {
	q.mu.Lock()
	q.stopIntakeLocked()
	q.releaseDrainsLocked()
	q.mu.Unlock()
	q.delayed.running.Wait()
}

// ShuttingDown reports whether ShutDown or Drain was called.
func (q *Queue[K]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shutdown.begun
}

// Drain stops intake as ShutDown does, and waits until all remaining keys have been processed: those that were ready or
// due, those in processing, and those added again while processing. It needs workers that go on calling Get and Done.
//
// Several calls of Drain may wait at once; each returns nil when the queue is drained. Errors: a [*DrainError] if keys
// are left when ctx ends or ShutDown is called. Delays that are not yet due do not count as work left: they are
// dropped.
func (q *Queue[K]) Drain(ctx context.Context) error {
	q.mu.Lock()
	q.stopIntakeLocked()
	if q.shutdown.drained == nil {
		q.shutdown.drained = make(chan struct{})
	}
	drained := q.shutdown.drained
	q.reportDrainedLocked()
	q.mu.Unlock()
	q.delayed.running.Wait()

	cause := ErrShutDown
	select {
	case <-drained:
	case <-ctx.Done():
		cause = ctx.Err()
	}
	return q.drainError(cause)
}

// stopIntakeLocked is the first step of ShutDown and Drain.
func (q *Queue[K]) stopIntakeLocked() {
	if q.shutdown.begun {
		return
	}
	q.expireLocked()
	q.shutdown.begun = true
	q.stopDelaysLocked()
	q.wakeLocked()
}

// reportDrainedLocked releases the waiting Drains if no key is left. No key is added after that.
func (q *Queue[K]) reportDrainedLocked() {
	if q.shutdown.drained != nil && q.ready.len() == 0 && len(q.processing) == 0 {
		q.releaseDrainsLocked()
	}
}

// releaseDrainsLocked releases the waiting Drains.
func (q *Queue[K]) releaseDrainsLocked() {
	if q.shutdown.drained != nil {
		close(q.shutdown.drained)
		q.shutdown.drained = nil
	}
}

// drainError returns a DrainError that lists the keys in the queue, or nil if there are none. A key that is dirty and
// processing is listed once.
func (q *Queue[K]) drainError(cause error) error {
	q.mu.Lock()
	queued := make([]K, 0, q.ready.len())
	for id := range q.ready.all() {
		queued = append(queued, q.entries.at(id).key)
	}
	processing := make([]K, 0, len(q.processing))
	for _, w := range q.processing {
		processing = append(processing, w.entry.key)
	}
	q.mu.Unlock()
	if len(queued)+len(processing) == 0 {
		return nil
	}
	return &DrainError{Queued: texts(queued), Processing: texts(processing), Cause: cause}
}

// texts formats keys for people. It may call their String methods, so the lock must not be held.
func texts[K comparable](keys []K) (all []string) {
	for _, key := range keys {
		all = append(all, fmt.Sprint(key))
	}
	return all
}
