package workqueue

import "context"

// wakeLocked wakes a waiting Get if a key may be handed out. It is short enough to be inlined on the path of every key.
//
// Invariant: if a key may be handed out and a Get waits, one is being woken. Every operation that can make either
// condition true ends with wakeLocked. Package waitlist says why only one is woken at a time.
func (q *Queue[K]) wakeLocked() {
	if q.waiting.MayWake() && q.openLocked() {
		q.waiting.WakeOne()
	}
}

// waitLocked releases the lock and waits until it is woken to look for a key, or until ctx is done, in which case it
// returns ctx's error. It returns with the lock held.
func (q *Queue[K]) waitLocked(ctx context.Context) error {
	w := q.waiting.Push()
	q.mu.Unlock()
	select {
	case <-w.Woken:
		q.mu.Lock()
		q.waiting.Looks(w)
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	if q.waiting.GiveUp(w) {
		q.wakeLocked()
	}
	return ctx.Err()
}
