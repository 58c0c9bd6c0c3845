package workqueue

import (
	"iter"

	"github.com/flyball-dev/flyball/workqueue/internal/ring"
)

// LowPriority is the priority of keys that can wait, such as those of objects that have not changed. In a queue without
// an Order all negative priorities are alike. With the default Age, a [NewPriorityOrder] lets a key of this priority
// wait for up to ten minutes longer than other keys.
const LowPriority = -6000

// lanes holds the ready keys of a queue without an Order: first in, first out, but keys of negative priority wait in a
// second lane, low.
//
// With strict priorities, the low lane would starve while other keys keep all workers busy. With ageing, a thousand low
// keys that have waited long would all go before a new normal key. So the low lane gets every tenth turn: it always
// advances, and hardly delays the normal lane.
type lanes[K comparable] struct {
	// normal holds the ids of entries.
	normal ring.Ring[uint32]
	// low holds runs, and nil where a run has moved to the normal lane; inLow counts the runs.
	//
	// Invariant: the Place of a run in low is its place there.
	low   ring.Ring[*run[K]]
	inLow int
	// passed counts the keys handed out from the normal lane since the last turn of the low lane. It counts only while
	// the low lane has a run.
	passed int
}

// maxPassed is how many keys of the normal lane are handed out before the low lane gets a turn.
const maxPassed = 9

func (l *lanes[K]) len() int { return l.normal.Len() + l.inLow }

// push adds an entry that became ready. next may be nil.
func (l *lanes[K]) push(id uint32, next *run[K]) {
	if next == nil || next.Priority >= 0 {
		l.normal.Push(id)
		return
	}
	next.Place = int(l.low.Push(next))
	l.inLow++
}

// raise moves a run from the low lane to the end of the normal one.
func (l *lanes[K]) raise(next *run[K]) {
	l.low.Clear(uint(next.Place))
	l.inLow--
	for l.inLow == 0 && l.low.Len() > 0 { // Only cleared places are left.
		l.low.Pop()
	}
	l.normal.Push(next.ID)
}

// pop removes the next key and returns the id of its entry. There must be one.
func (l *lanes[K]) pop() uint32 {
	if l.inLow == 0 {
		return l.normal.Pop()
	}
	if l.normal.Len() > 0 && l.passed < maxPassed {
		l.passed++
		return l.normal.Pop()
	}
	l.passed = 0
	l.inLow--
	for {
		if next := l.low.Pop(); next != nil {
			return next.ID
		}
	}
}

// all yields the ids of the entries, those of the normal lane first.
func (l *lanes[K]) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for id := range l.normal.All() {
			if !yield(id) {
				return
			}
		}
		for next := range l.low.All() {
			if next != nil && !yield(next.ID) {
				return
			}
		}
	}
}
