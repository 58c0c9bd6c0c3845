// Package hotloop finds keys that trigger themselves: each reconcile causes the next one. It is one of the checks
// beside the loop of package reconcile.
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

// The thresholds for a key that triggers itself.
const (
	// rowGap is the longest pause between two runs that belong to one row.
	rowGap = time.Second
	// shortRequeue is the shortest RequeueAfter that counts as polling. A shorter one counts as a loop.
	shortRequeue = 10 * time.Millisecond
	// watchAfter is the number of runs in a row after which the writes of the controller are recorded.
	watchAfter = 100
	// ReportAfter is the number of runs in a row after which a loop is reported: if the controller itself caused all of
	// them, or if no time passed between them.
	ReportAfter = 1000
	// EndlessAfter is the number of runs without any time between them after which the controller ends. A clock stands
	// still for so long only in testing/synctest. There, time moves only while all goroutines wait, so the loop would
	// never end.
	EndlessAfter = 5 * ReportAfter
)

// Detector records the last runs of a few keys. A key that loops runs so often that it is one of them.
//
// Concurrency: all methods may be called from any goroutine.
type Detector[K comparable] struct {
	controller string
	// requeue is the event in the cause of a run that the controller itself asked for.
	requeue string
	seed    maphash.Seed

	rows [64]row
	// trail records the last writes of keys that run often. It is nil until there is such a key.
	trail atomic.Pointer[trail.Trail]
	// first is the first loop that was found, or nil.
	first atomic.Pointer[Loop]
}

// row counts the runs of one key that follow each other with short pauses.
type row struct {
	mu sync.Mutex // guards the rest
	// hash identifies the key. The row does not hold the key itself, which may keep much memory alive.
	hash        uint64
	first, last time.Time // when the first and the last run began; zero if the row is free
	runs        int
	// own is the number of latest runs that nothing but the controller caused. still is the number of latest runs
	// between which no time passed.
	own, still int
	reported   bool
}

// Loop describes a key that triggers itself.
type Loop struct {
	Key      string
	Runs     int
	Duration time.Duration
	// Trigger is the cause of the last run, in words for people.
	Trigger string
	// Endless reports whether only the end of the controller can end the loop.
	Endless bool
}

// New returns the detector of a controller. requeue is the event in the causes of runs that a Result asked for.
func New[K comparable](controller, requeue string) *Detector[K] {
	return &Detector[K]{controller: controller, requeue: requeue, seed: maphash.MakeSeed()}
}

// Begin records that a run begins. It returns the context for the run, and the loop that it has found, if any. Each
// loop is returned once.
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
	// No lock is held here, because trigger calls the key's String method. No other run of the key begins meanwhile.
	trigger, own := d.trigger(writes, item, gap)
	found := at.judge(hash, own)
	if found != nil {
		found.Key, found.Trigger = fmt.Sprint(item.Key), trigger
		d.first.CompareAndSwap(nil, found)
	}
	return trail.With(ctx, writes), found
}

// beginLocked records a run and returns the length of the row. It returns 0 if the row belongs to another key that is
// running often and keeps the row.
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

// judge counts the run if own is set, which means that nothing but the controller caused it; otherwise the count starts
// over. It returns a Loop if the row has reached a threshold.
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

// trigger describes the causes of a run for people, and reports whether nothing but the controller caused it.
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

// First returns the first loop that was found, or nil.
func (d *Detector[K]) First() *Loop { return d.first.Load() }
