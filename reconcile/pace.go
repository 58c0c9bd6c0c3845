package reconcile

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// pacer keeps keys from running too often. It looks at a key when a worker has taken it: one that comes too early goes back
// into the queue with a delay, and what was known about it waits here.
type pacer[K comparable] struct {
	interval, quiet, longest time.Duration

	mu   sync.Mutex
	keys map[K]*pace
	// sweepAt is the size of keys at which those that say nothing any more are dropped.
	sweepAt int
}

// pace is what is known about one key.
type pace struct {
	// started is when its last run began.
	started time.Time
	// first and last are when it was added since then; zero when it was not, or when nobody debounces.
	first, last time.Time
	// waiting says that it was put off and has not run since; causes are those of the runs that were.
	waiting bool
	causes  []workqueue.Cause
}

// maxHeldCauses bounds pace.causes, as the queue bounds those of a key.
const maxHeldCauses = 8

// newPacer returns nil when o asks for no pacing; a nil pacer lets everything run.
func newPacer[K comparable](o Options[K]) *pacer[K] {
	if o.MinInterval <= 0 && o.Debounce <= 0 {
		return nil
	}
	longest := o.MaxDebounce
	if longest <= 0 {
		longest = 10 * o.Debounce
	}
	return &pacer[K]{interval: o.MinInterval, quiet: o.Debounce, longest: longest, keys: map[K]*pace{}, sweepAt: 1024}
}

// heard notes that an event added key.
func (p *pacer[K]) heard(key K) {
	if p == nil || p.quiet <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.ofLocked(key)
	k.last = time.Now()
	if k.first.IsZero() {
		k.first = k.last
	}
}

// admit returns how long the item still has to wait; 0 lets it run now, with the causes of all the times it had to.
func (p *pacer[K]) admit(item *workqueue.Item[K]) (wait time.Duration) {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, k := time.Now(), p.ofLocked(item.Key)
	if !k.started.IsZero() {
		wait = k.started.Add(p.interval).Sub(now)
	}
	if !k.last.IsZero() {
		wait = max(wait, min(k.last.Add(p.quiet).Sub(now), k.first.Add(p.longest).Sub(now)))
	}
	// The item's slice is the queue's, and must not grow into its memory.
	k.causes = append(k.causes, item.Causes...)
	if over := len(k.causes) - maxHeldCauses; over > 0 {
		k.causes = k.causes[:maxHeldCauses]
		item.DroppedCauses += over
	}
	if wait > 0 {
		k.waiting = true
		return wait
	}
	item.Causes = slices.Clip(k.causes)
	*k = pace{started: now}
	return 0
}

// holds says whether key was put off and has not run since.
func (p *pacer[K]) holds(key K) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.keys[key]
	return k != nil && k.waiting
}

func (p *pacer[K]) forget(key K) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, key)
}

func (p *pacer[K]) discard(match func(K) bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.keys, func(key K, _ *pace) bool { return match(key) })
}

func (p *pacer[K]) ofLocked(key K) *pace {
	k := p.keys[key]
	if k == nil {
		p.sweepLocked()
		k = &pace{}
		p.keys[key] = k
	}
	return k
}

// sweepLocked drops the keys whose interval has passed and that nobody waits for. It costs a constant per key added.
func (p *pacer[K]) sweepLocked() {
	if len(p.keys) < p.sweepAt {
		return
	}
	now := time.Now()
	for key, k := range p.keys {
		if k.last.IsZero() && !k.waiting && now.Sub(k.started) >= p.interval {
			delete(p.keys, key)
		}
	}
	p.sweepAt = max(1024, 2*len(p.keys))
}
