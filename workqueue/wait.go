package workqueue

import "context"

// wakeLocked wakes a waiting Get if one need not wait any longer. It is short enough to be inlined, because it is on
// the path of every key.
//
// Invariant: if a Get waits although it could return, one is being woken. Every operation that can break this ends with
// wakeLocked. That includes a Get that returns, so each Get wakes the next. Package waitlist gives the reason why only
// one is woken at a time.
func (q *Queue[K]) wakeLocked() {
	if q.waiting.MayWake() {
		q.wakeNextLocked()
	}
}

func (q *Queue[K]) wakeNextLocked() {
	if q.ready.canPop() || q.endedLocked() {
		q.waiting.Wake()
	}
}

// endedLocked reports whether the queue is shut down and has nothing left to hand out.
func (q *Queue[K]) endedLocked() bool { return q.shutdown.begun && q.ready.len() == 0 }

// waitLocked releases the lock and waits until it is woken to look for a key, or until ctx is done, in which case it
// returns ctx's error. It returns with the lock held.
func (q *Queue[K]) waitLocked(ctx context.Context) error {
	w := q.waiting.Push()
	q.mu.Unlock()
	select {
	case <-w.Woken:
		q.mu.Lock()
		q.waiting.Awake(w)
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	if q.waiting.Cancel(w) {
		q.wakeLocked()
	}
	return ctx.Err()
}
