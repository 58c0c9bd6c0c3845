// Package delay is the solution of task 07b.
package delay

import (
	"cmp"
	"container/heap"
	"sync"
	"time"
)

// Delays holds keys that are added later.
type Delays[K comparable] struct {
	add func(key K)

	mu sync.Mutex
	// pending is a heap of the waiting keys by deadline, and byKey finds them.
	pending pending[K]
	byKey   map[K]*delayed[K]
	calls   int

	// timer is set to the first deadline; nil if no key waits.
	timer   *time.Timer
	running sync.WaitGroup // counts the timer while it is set, its functions that run, and immediate adds
	stopped bool
}

// delayed is a waiting key.
type delayed[K comparable] struct {
	key      K
	deadline time.Time
	call     int // orders equal deadlines
	place    int // in pending
}

// New returns Delays that pass keys to add.
func New[K comparable](add func(key K)) *Delays[K] {
	return &Delays[K]{add: add, byKey: map[K]*delayed[K]{}}
}

// AddAfter adds the key when wait has passed.
func (d *Delays[K]) AddAfter(key K, wait time.Duration) {
	d.mu.Lock()
	if d.stopped {
		d.mu.Unlock()
		return
	}
	if wait <= 0 {
		d.running.Add(1)
		d.mu.Unlock()
		defer d.running.Done()
		d.add(key)
		return
	}
	defer d.mu.Unlock()
	d.calls++
	deadline := time.Now().Add(wait)
	if known := d.byKey[key]; known == nil {
		one := &delayed[K]{key: key, deadline: deadline, call: d.calls}
		d.byKey[key] = one
		heap.Push(&d.pending, one)
	} else if deadline.Before(known.deadline) {
		known.deadline, known.call = deadline, d.calls
		heap.Fix(&d.pending, known.place)
	}
	d.setTimerLocked()
}

// setTimerLocked sets the timer to the first deadline.
func (d *Delays[K]) setTimerLocked() {
	d.stopTimerLocked()
	if len(d.pending) == 0 {
		return
	}
	d.running.Add(1)
	d.timer = time.AfterFunc(time.Until(d.pending[0].deadline), d.fire)
}

func (d *Delays[K]) stopTimerLocked() {
	if d.timer != nil && d.timer.Stop() {
		d.running.Done()
	}
	d.timer = nil
}

// fire adds the keys whose deadline has passed.
func (d *Delays[K]) fire() {
	defer d.running.Done()
	d.mu.Lock()
	var due []K
	for now := time.Now(); len(d.pending) > 0 && !d.pending[0].deadline.After(now); {
		one := heap.Pop(&d.pending).(*delayed[K])
		delete(d.byKey, one.key)
		due = append(due, one.key)
	}
	d.setTimerLocked()
	d.mu.Unlock()
	for _, key := range due {
		d.add(key)
	}
}

// Len returns how many keys wait.
func (d *Delays[K]) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.pending)
}

// Stop drops the waiting keys, and returns when no call of add is running.
func (d *Delays[K]) Stop() {
	d.mu.Lock()
	d.stopped = true
	d.pending = nil
	clear(d.byKey)
	d.stopTimerLocked()
	d.mu.Unlock()
	d.running.Wait()
}

// pending implements heap.Interface.
type pending[K comparable] []*delayed[K]

func (p pending[K]) Len() int { return len(p) }

func (p pending[K]) Less(i, j int) bool {
	return cmp.Or(p[i].deadline.Compare(p[j].deadline), cmp.Compare(p[i].call, p[j].call)) < 0
}

func (p pending[K]) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].place, p[j].place = i, j
}

func (p *pending[K]) Push(x any) {
	one := x.(*delayed[K])
	one.place = len(*p)
	*p = append(*p, one)
}

func (p *pending[K]) Pop() any {
	last := len(*p) - 1
	one := (*p)[last]
	(*p)[last] = nil
	*p = (*p)[:last]
	return one
}
