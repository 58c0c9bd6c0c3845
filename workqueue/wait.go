package workqueue

import "context"

// waiter is one Get that waits for a key.
type waiter struct {
	// wake has capacity 1. The queue sends to it, once per wait, under the lock; the waiting Get receives.
	// Capacity 1 lets the queue send without blocking. It is never closed, so that waiters can be reused.
	wake chan struct{}
	// place is the waiter's index in waiters.stack, none once it was woken.
	place int
}

// waiters are the Gets that wait for a key.
//
// The obvious design wakes one waiter per key that becomes ready. With many workers and short work that is what
// bounds the queue: each waking costs more than the work. Here one waiter at a time is being woken. When it arrives it
// takes a key, and if there are more keys and more waiters it wakes the next. So workers are woken no
// faster than they arrive, a burst is taken by the few that are awake, and no key is left lying.
//
// Invariant: if a key may be handed out and a waiter is on the stack, waking is true. (Each way to make one of the two true
// ends with wakeLocked.)
type waiters struct {
	// stack holds those that wait. The last to come is woken first: its memory is the warmest.
	stack []*waiter
	// waking: a waiter was woken and has not yet looked for a key.
	waking bool
	// spare are waiters that nobody uses.
	spare []*waiter
}

// wakeLocked keeps the invariant of waiters. It is short enough to be inlined where it is called for each key.
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

// wakeAllLocked wakes everybody: the queue was shut down. Each of them looks for a key by itself, so none is "the" waking one.
func (q *Queue[K]) wakeAllLocked() {
	w := &q.waiters
	for _, each := range w.stack {
		each.place = none
		each.wake <- struct{}{}
	}
	clear(w.stack)
	w.stack = w.stack[:0]
}

// waitLocked gives up the lock until something is there to look for, or ctx is done, and returns ctx's error then.
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
		// Woken, but leaving: the key it was woken for is another's.
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
	last := len(w.stack) - 1
	copy(w.stack[gone.place:], w.stack[gone.place+1:])
	w.stack[last] = nil
	w.stack = w.stack[:last]
	for i := gone.place; i < last; i++ {
		w.stack[i].place = i
	}
}
