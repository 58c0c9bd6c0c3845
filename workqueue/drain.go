package workqueue

import (
	"context"
	"fmt"
)

// shutdown is the state of a queue's shutdown.
type shutdown struct {
	// begun: the queue ignores adds.
	begun bool
	// drained is closed when no key is ready or processing. It is nil if no Drain waits.
	drained chan struct{}
	// aborted is closed by ShutDown, to end the Drains that wait. It is nil if no Drain waits.
	aborted chan struct{}
}

// ShutDown stops intake: the queue ignores every later add, and drops pending delays. Keys that are ready, or that were
// added again while processing, are still handed out; then Get returns [ErrShutDown]. A waiting Drain gives up.
// ShutDown may be called any number of times. When it returns, no goroutine of the queue is left.
func (q *Queue[K]) ShutDown() {
	q.mu.Lock()
	q.stopIntakeLocked()
	if q.shutdown.aborted != nil {
		close(q.shutdown.aborted)
		q.shutdown.aborted, q.shutdown.drained = nil, nil
	}
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
	if q.drainedLocked() {
		q.mu.Unlock()
		q.delayed.running.Wait()
		return nil
	}
	if q.shutdown.drained == nil {
		q.shutdown.drained, q.shutdown.aborted = make(chan struct{}), make(chan struct{})
	}
	drained, aborted := q.shutdown.drained, q.shutdown.aborted
	q.mu.Unlock()
	q.delayed.running.Wait()

	cause := error(nil)
	select {
	case <-drained:
		return nil
	case <-aborted:
		cause = ErrShutDown
	case <-ctx.Done():
		cause = ctx.Err()
	}
	return q.left(cause)
}

// stopIntakeLocked is the first step of ShutDown and of Drain.
func (q *Queue[K]) stopIntakeLocked() {
	if q.shutdown.begun {
		return
	}
	q.endDueLocked()
	q.shutdown.begun = true
	q.stopDelaysLocked()
	q.wakeAllLocked()
}

func (q *Queue[K]) drainedLocked() bool {
	return q.readyLocked() == 0 && len(q.processing) == 0
}

// reportDrainedLocked releases the waiting Drains if the queue is drained.
func (q *Queue[K]) reportDrainedLocked() {
	if q.shutdown.drained != nil && q.drainedLocked() {
		close(q.shutdown.drained)
		q.shutdown.drained, q.shutdown.aborted = nil, nil
	}
}

// left returns a DrainError that lists the keys in the queue, or nil if there are none. It lists a key that is
// processing and was added again once.
func (q *Queue[K]) left(cause error) error {
	var queued, processing []K
	q.mu.Lock()
	for key := range q.readyKeysLocked() {
		queued = append(queued, key)
	}
	for _, w := range q.processing {
		processing = append(processing, w.entry.key)
	}
	q.mu.Unlock()
	if len(queued)+len(processing) == 0 {
		return nil
	}
	left := &DrainError{Cause: cause}
	for _, key := range queued {
		left.Queued = append(left.Queued, fmt.Sprint(key))
	}
	for _, key := range processing {
		left.Processing = append(left.Processing, fmt.Sprint(key))
	}
	return left
}
