// Package waitlist holds the goroutines that wait for a key of a queue.
//
// The obvious design wakes one waiter for each key that becomes ready. With many workers and short work, that limits
// the throughput of the queue: a wake-up costs more than the work. Here at most one waiter is being woken at a time.
// When that waiter runs, it takes a key, or finds the queue shut down. Then it wakes the next waiter, if there is
// another key or the queue is shut down. So workers are woken no faster than they start running, a burst is handled by
// the few that are awake, and no key is left behind.
package waitlist

import "slices"

// Waiter is one goroutine that waits.
type Waiter struct {
	// Woken carries one signal per wait: the queue sends it under its lock, and the waiter receives it. Capacity 1 lets
	// the queue send without blocking. The channel is never closed, so that waiters can be reused.
	Woken chan struct{}
	// place is the waiter's index in List.stack; none once it has been woken.
	place int
}

const none = -1

// List holds the goroutines that wait. The queue's lock guards it.
type List struct {
	// stack holds the waiters. The last one pushed is woken first, because its memory is most likely still cached.
	stack []*Waiter
	// waking reports whether a waiter has been woken and has not yet looked for a key.
	waking bool
	// spare holds waiters for reuse.
	spare []*Waiter
}

// MayWake reports whether there is a waiter, and none is being woken.
func (l *List) MayWake() bool { return len(l.stack) > 0 && !l.waking }

// Wake wakes the waiter that was pushed last. It must not be called unless MayWake.
func (l *List) Wake() {
	last := len(l.stack) - 1
	top := l.stack[last]
	l.stack[last] = nil
	l.stack = l.stack[:last]
	l.waking = true
	top.place = none
	top.Woken <- struct{}{}
}

// Push adds a waiter.
func (l *List) Push() *Waiter {
	var top *Waiter
	if n := len(l.spare); n > 0 {
		top, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		top = &Waiter{Woken: make(chan struct{}, 1)}
	}
	top.place = len(l.stack)
	l.stack = append(l.stack, top)
	return top
}

// Awake takes back a waiter that has received its signal and looks for a key. Another may be woken from now on.
func (l *List) Awake(w *Waiter) {
	l.waking = false
	l.spare = append(l.spare, w)
}

// Cancel takes back a waiter that no longer waits. It reports whether the waiter had already been woken. If so, the
// caller must wake another in its place.
func (l *List) Cancel(w *Waiter) (woken bool) {
	if woken = w.place == none; woken {
		<-w.Woken
		l.waking = false
	} else {
		l.stack = slices.Delete(l.stack, w.place, w.place+1)
		for i := w.place; i < len(l.stack); i++ {
			l.stack[i].place = i
		}
	}
	l.spare = append(l.spare, w)
	return woken
}
