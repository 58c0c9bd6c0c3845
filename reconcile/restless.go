package reconcile

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/trail"
	"github.com/flyball-dev/flyball/workqueue"
)

// The bounds of a key that triggers itself.
const (
	// rowGap is the longest pause between two runs in a row.
	rowGap = time.Second
	// hastyRequeue is the shortest RequeueAfter that is a poll; a shorter one is a loop.
	hastyRequeue = 10 * time.Millisecond
	// watchAfter is how many runs in a row it takes until what the controller writes is noted.
	watchAfter = 100
	// restlessAfter is how many runs in a row, each of the controller's own making, or all at one instant, are told.
	restlessAfter = 1000
	// endlessAfter is how many runs at one instant end the controller. No clock stands still for so long but the virtual one of
	// testing/synctest, which moves only when all goroutines wait: the loop would never end.
	endlessAfter = 5 * restlessAfter
)

// SelfTriggeredError says that the reconciles of a key cause each other.
type SelfTriggeredError struct {
	Controller, Key string
	// Runs is how many there were in a row, and Duration how long they took. It is 0 where the clock is virtual and did not move.
	Runs     int
	Duration time.Duration
	// Trigger is what the last run was caused by, in words for people: "its own update of configmaps default/x (field manager greeter)".
	Trigger string
}

// Error says what happened, and what to do.
func (e *SelfTriggeredError) Error() string {
	took := "within " + e.Duration.Round(time.Millisecond).String()
	if e.Duration == 0 {
		took = "while no time passed"
	}
	return fmt.Sprintf("controller %s: key %s was reconciled %d times in a row, %s, and is triggered again each time by %s: write only what differs, or leave the event out with a predicate",
		e.Controller, e.Key, e.Runs, took, e.Trigger)
}

// restless finds keys whose reconciles cause each other. It looks at the last runs of a few keys: one that loops comes by so often that
// it has a place among them.
//
// Concurrency: the caller of begin holds the controller's lock.
type restless[K comparable] struct {
	seed  maphash.Seed
	rows  [64]row
	trail *trail.Trail // nil until a key has run watchAfter times in a row
	// found is the first that was found; nil: none.
	found atomic.Pointer[SelfTriggeredError]
}

// row is the runs in a row of one key.
type row struct {
	// hash stands for the key, which may hold more than a name and must not live longer than its runs.
	hash        uint64
	first, last time.Time // when the first and the last began; zero: the place is free
	runs        int
	// own counts the last runs that had no cause but the controller's own doing; still those that began at the same instant.
	own, still int
	// told says that an alarm was given.
	told bool
}

// begin notes that a run of key begins. watch is not nil when what it writes is to be noted; alarm is, when the key is found to trigger
// itself; endless says that nothing but the end of the controller ends that.
func (r *restless[K]) begin(c *Controller[K], item *workqueue.Item[K], now time.Time) (watch *trail.Trail, alarm *SelfTriggeredError, endless bool) {
	hash := maphash.Comparable(r.seed, item.Key)
	at := &r.rows[hash%uint64(len(r.rows))]
	gap := now.Sub(at.last)
	switch {
	case at.hash == hash && gap <= rowGap && !at.last.IsZero():
	case at.runs >= watchAfter && gap <= rowGap:
		return nil, nil, false // The place is taken by a key that is busier.
	default:
		*at = row{hash: hash, first: now, last: now, runs: 1, still: 1}
		return nil, nil, false
	}
	at.runs++
	at.last = now
	if gap > 0 {
		at.still = 0
	}
	at.still++
	if at.runs < watchAfter {
		return nil, nil, false
	}
	if r.trail == nil {
		r.trail = &trail.Trail{}
	}
	trigger, isOwn := c.trigger(item, gap)
	if at.own++; !isOwn {
		at.own = 0
	}
	endless = at.still == endlessAfter
	if !at.told && max(at.own, at.still) >= restlessAfter || endless {
		at.told = true
		alarm = &SelfTriggeredError{Controller: c.name, Key: fmt.Sprint(item.Key), Runs: at.runs, Duration: now.Sub(at.first), Trigger: trigger}
		r.found.CompareAndSwap(nil, alarm)
	}
	return r.trail, alarm, endless
}

// trigger says what a run was caused by, and whether by nothing but what the controller did itself.
func (c *Controller[K]) trigger(item *workqueue.Item[K], gap time.Duration) (words string, isOwn bool) {
	var own, foreign []string
	for _, cause := range item.Causes {
		write, isWrite := c.restless.trail.Find(cause.Object, cause.ResourceVersion)
		switch {
		case isWrite:
			own = append(own, fmt.Sprintf("its own %s of %s %s (field manager %s)", strings.ToLower(write.Verb), write.Resource, write.Object, write.Manager))
		case cause.Source == c.name && cause.Event == whyRequeue && gap < hastyRequeue:
			own = append(own, "its own RequeueAfter, which is shorter than "+hastyRequeue.String())
		case cause.Event == "Emit" && cause.Object == fmt.Sprintf("%s %v", c.name, item.Key):
			own = append(own, "what it emits to "+cause.Source)
		default:
			foreign = append(foreign, strings.TrimSpace(fmt.Sprintf("%s %s %s", cause.Source, cause.Event, cause.Object)))
		}
	}
	isOwn = len(own) > 0 && len(foreign) == 0
	all := slices.Compact(append(own, foreign...))
	if len(all) == 0 {
		all = []string{"something that gives no cause"}
	}
	return strings.Join(all, ", "), isOwn
}

// watchRow looks whether the run that begins is one of a key that triggers itself. It returns the context to run it with.
func (c *Controller[K]) watchRow(work context.Context, item *workqueue.Item[K], now time.Time) context.Context {
	c.mu.Lock()
	watch, alarm, endless := c.restless.begin(c, item, now)
	stop := c.stop
	c.mu.Unlock()
	switch {
	case endless:
		stop(alarm)
	case alarm != nil:
		klog.FromContext(work).Error(alarm, "A reconcile triggers itself", "controller", c.name, "key", item.Key)
	}
	if watch == nil {
		return work
	}
	return trail.With(work, watch)
}

// SelfTriggered is a [SelfTriggeredError], when a key of the controller has been found to trigger itself; else nil.
func (c *Controller[K]) SelfTriggered() error {
	if found := c.restless.found.Load(); found != nil {
		return found
	}
	return nil
}
