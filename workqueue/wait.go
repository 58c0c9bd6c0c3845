package workqueue

import (
	"context"
	"slices"
)

// waiter is one Get call that waits for a key.
type waiter struct {
	// wake carries one signal per wait: the queue sends it under the lock, and the waiting Get receives it. Capacity 1
	// lets the queue send without blocking. The channel is never closed, so that waiters can be reused.
	wake chan struct{}
	// place is the waiter's index in waiters.stack; none once it has been woken.
	place int
}

// waiters holds the Get calls that wait for a key.
//
// The obvious design wakes one waiter for each key that becomes ready. With many workers and short work, that limits
// the throughput of the queue: a wake-up costs more than the work. Here at most one waiter is being woken at a time.
// When it runs, it takes a key; if there are more keys and more waiters, it wakes the next. So workers are woken no
// faster than they start running, a burst is handled by the few that are awake, and no key is left behind.
//
// Invariant: if a key may be handed out and a waiter is on the stack, waking is true. Every operation that can make
// either condition true ends with wakeLocked.
type waiters struct {
	// stack holds the waiters. The last one pushed is woken first, because its memory is most likely still cached.
	stack []*waiter
	// waking: a waiter has been woken and has not yet looked for a key.
	waking bool
	// spare holds waiters for reuse.
	spare []*waiter
}

// wakeLocked maintains the invariant of waiters. It is short enough to be inlined on the path of every key.
func (q *Queue[K]) wakeLocked() {
	if len(q.waiters.stack) > 0 && !q.waiters.waking && q.openLocked() {
		q.waiters.wakeOne()
	}
}

func (w *waiters) wakeOne() {
	last := len(w.stack) - 1
	top := w.stack[last]
	w.stack[last] = nil
	w.stack = w.stack[:last]
	w.waking = true
	top.place = none
	top.wake <- struct{}{}
}

// wakeAllLocked wakes all waiters because the queue was shut down. Each of them looks for a key, so waking stays as it
// is.
func (q *Queue[K]) wakeAllLocked() {
	w := &q.waiters
	for _, each := range w.stack {
		each.place = none
		each.wake <- struct{}{}
	}
	clear(w.stack)
	w.stack = w.stack[:0]
}

// waitLocked releases the lock and waits until it is woken to look for a key, or until ctx is done, in which case it
// returns ctx's error. It returns with the lock held.
func (q *Queue[K]) waitLocked(ctx context.Context) error {
	w := q.waiters.push()
	q.mu.Unlock()
	var err error
	select {
	case <-w.wake:
	case <-ctx.Done():
		err = ctx.Err()
	}
	q.mu.Lock()
	switch {
	case err == nil:
		q.waiters.waking = false
	case w.place != none:
		q.waiters.remove(w)
	default:
		// Woken, but ctx is done as well: leave the key to another waiter.
		<-w.wake
		q.waiters.waking = false
		q.wakeLocked()
	}
	q.waiters.spare = append(q.waiters.spare, w)
	return err
}

func (w *waiters) push() *waiter {
	var top *waiter
	if n := len(w.spare); n > 0 {
		top, w.spare = w.spare[n-1], w.spare[:n-1]
	} else {
		top = &waiter{wake: make(chan struct{}, 1)}
	}
	top.place = len(w.stack)
	w.stack = append(w.stack, top)
	return top
}

func (w *waiters) remove(gone *waiter) {
	w.stack = slices.Delete(w.stack, gone.place, gone.place+1)
	for i := gone.place; i < len(w.stack); i++ {
		w.stack[i].place = i
	}
}
