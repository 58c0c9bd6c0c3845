// Package hotloop finds keys whose reconciles cause each other. It is a room beside the loop of package reconcile.
package hotloop

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/internal/trail"
	"github.com/flyball-dev/flyball/workqueue"
)

// The bounds of a key that triggers itself.
const (
	// rowGap is the longest pause between two runs in a row.
	rowGap = time.Second
	// shortRequeue is the shortest RequeueAfter that is a poll; a shorter one is a loop.
	shortRequeue = 10 * time.Millisecond
	// watchAfter is how many runs in a row it takes until what the controller writes is noted.
	watchAfter = 100
	// ReportAfter is how many runs in a row are reported, if all were caused by the controller itself, or all are of
	// one instant.
	ReportAfter = 1000
	// EndlessAfter is how many runs at one instant end the controller. No clock stands still for so long but the
	// virtual one of testing/synctest, which moves only when all goroutines wait: the loop would never end.
	EndlessAfter = 5 * ReportAfter
)

// Detector looks at the last runs of a few keys: one that loops comes by so often that it has a place among them.
//
// Concurrency: all methods may be called from any goroutine.
type Detector[K comparable] struct {
	controller string
	// requeue is the event of causes by which the controller itself runs a key again.
	requeue string
	seed    maphash.Seed

	rows [64]row
	// trail has the last writes of keys that run often; nil until there is one.
	trail atomic.Pointer[trail.Trail]
	// first is the first loop that was found; nil: none.
	first atomic.Pointer[Loop]
}

// row is the runs in a row of one key.
type row struct {
	mu sync.Mutex // Guards the rest.
	// hash stands for the key, which may hold more than a name and must not live longer than its runs.
	hash        uint64
	first, last time.Time // when the first and the last began; zero: the place is free
	runs        int
	// own counts the last runs that were caused by nothing but the controller itself; still those that began at the
	// same instant.
	own, still int
	// reported: the row was reported.
	reported bool
}

// Loop is a key whose reconciles cause each other.
type Loop struct {
	Key      string
	Runs     int
	Duration time.Duration
	// Trigger is what the last run was caused by, in words for people.
	Trigger string
	// Endless: nothing but the end of the controller ends the loop.
	Endless bool
}

// New returns a detector for a controller, which gives the runs that it asks for itself the event requeue.
func New[K comparable](controller, requeue string) *Detector[K] {
	return &Detector[K]{controller: controller, requeue: requeue, seed: maphash.MakeSeed()}
}

// Begin notes that a run begins. It returns the context to run it with, and a loop if one is found now, once for each.
func (d *Detector[K]) Begin(ctx context.Context, item *workqueue.Item[K], now time.Time) (context.Context, *Loop) {
	hash := maphash.Comparable(d.seed, item.Key)
	at := &d.rows[hash%uint64(len(d.rows))]
	at.mu.Lock()
	gap := now.Sub(at.last)
	runs := at.beginLocked(hash, now, gap)
	at.mu.Unlock()
	if runs < watchAfter {
		return ctx, nil
	}
	writes := d.trail.Load()
	if writes == nil {
		d.trail.CompareAndSwap(nil, &trail.Trail{})
		writes = d.trail.Load()
	}
	// What follows calls the key's String method, so it holds no lock. No other run of the key begins meanwhile.
	trigger, own := d.trigger(writes, item, gap)
	found := at.judge(hash, own)
	if found != nil {
		found.Key, found.Trigger = fmt.Sprint(item.Key), trigger
		d.first.CompareAndSwap(nil, found)
	}
	return trail.With(ctx, writes), found
}

// beginLocked notes a run in the row's place and returns how many there were in a row; 0 if the place is taken by a key
// that is busier.
func (r *row) beginLocked(hash uint64, now time.Time, gap time.Duration) int {
	switch {
	case r.hash == hash && gap <= rowGap && !r.last.IsZero():
	case r.runs >= watchAfter && gap <= rowGap:
		return 0
	default:
		r.hash, r.first, r.runs, r.own, r.still, r.reported = hash, now, 0, 0, 0, false
	}
	r.runs++
	r.last = now
	if gap > 0 {
		r.still = 0
	}
	r.still++
	return r.runs
}

// judge reports a row that has become a loop.
func (r *row) judge(hash uint64, own bool) *Loop {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hash != hash {
		return nil
	}
	if r.own++; !own {
		r.own = 0
	}
	endless := r.still == EndlessAfter
	if !endless && (r.reported || max(r.own, r.still) < ReportAfter) {
		return nil
	}
	r.reported = true
	return &Loop{Runs: r.runs, Duration: r.last.Sub(r.first), Endless: endless}
}

// trigger puts into words what a run was caused by, and reports whether that was nothing but the controller itself.
func (d *Detector[K]) trigger(writes *trail.Trail, item *workqueue.Item[K],
	gap time.Duration,
) (words string, isOwn bool) {
	var own, foreign []string
	for _, cause := range item.Causes {
		write, isWrite := writes.Find(cause.Object, cause.ResourceVersion)
		switch {
		case isWrite:
			own = append(own, fmt.Sprintf("its own %s of %s %s (field manager %s)",
				strings.ToLower(write.Verb), write.Resource, write.Object, write.Manager))
		case cause.Source == d.controller && cause.Event == d.requeue && gap < shortRequeue:
			own = append(own, "its own RequeueAfter, which is shorter than "+shortRequeue.String())
		case cause.Event == "Emit" && cause.Object == fmt.Sprintf("%s %v", d.controller, item.Key):
			own = append(own, "what it emits to "+cause.Source)
		default:
			foreign = append(foreign,
				strings.TrimSpace(fmt.Sprintf("%s %s %s", cause.Source, cause.Event, cause.Object)))
		}
	}
	isOwn = len(own) > 0 && len(foreign) == 0
	all := slices.Compact(append(own, foreign...))
	if len(all) == 0 {
		all = []string{"something that gives no cause"}
	}
	return strings.Join(all, ", "), isOwn
}

// First returns the first loop that was found; nil if there was none.
func (d *Detector[K]) First() *Loop { return d.first.Load() }
