package workqueue

import (
	"context"
	"fmt"
)

// shutdown is how far a queue is from its end.
type shutdown struct {
	// begun: nothing is taken in any more.
	begun bool
	// drained is closed when nothing is ready or processing. Nil if no Drain waits.
	drained chan struct{}
	// aborted is closed by a ShutDown that finds Drains waiting. Nil if no Drain waits.
	aborted chan struct{}
}

// ShutDown stops intake: from now on every add is ignored, and delays that have not ended are dropped. Keys that are
// ready, or are added again already while processing, are still handed out; then Get returns [ErrShutDown].
// ShutDown makes a Drain that waits give up. It may be called any number of times; when it returns, no
// goroutine of the queue is left.
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

// Drain stops intake as ShutDown does, and waits until every key that was ready, due, processing or added again
// while processing has been worked on. It needs workers that go on calling Get and Done.
//
// Any number of Drains may wait; each returns nil when the queue is drained. Errors: a [*DrainError] when ctx ends first,
// or when ShutDown is called meanwhile. Delays not yet due are no work left undone: they are dropped.
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

// stopIntakeLocked is the common beginning of ShutDown and Drain.
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

// reportDrainedLocked releases the Drains that wait if the queue is drained.
func (q *Queue[K]) reportDrainedLocked() {
	if q.shutdown.drained != nil && q.drainedLocked() {
		close(q.shutdown.drained)
		q.shutdown.drained, q.shutdown.aborted = nil, nil
	}
}

// left says what is in the queue, or returns nil if nothing is. A key that is processing and was added again is listed once.
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
