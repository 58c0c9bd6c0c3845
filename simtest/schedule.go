package simtest

import (
	"cmp"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/flyball-dev/flyball/localapi/gate"
)

// Of a random schedule, one choice in oddTurn departs from first in, first out, and one in oddLinger lets time pass.
const (
	oddTurn   = 4
	oddLinger = 40
)

// busyFor is how many operations happen at one instant before time passes. Requests take no time here. Without that, a
// program and others that undo each other's writes would go on for ever in the second after which the program lists
// again.
const busyFor = 1000

// A program that asks hotRequests times for the same within hotWithin, while no object changes, is in a hot loop.
const (
	hotRequests = 500
	hotWithin   = time.Minute
)

// later is the turn that lets time pass before anything else happens: until something arrives, at most lingerFor.
const (
	later     = -1
	lingerFor = time.Second
)

// choose returns what happens next, or nil if nothing can.
func (w *world) choose() *op {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.round++
	var ready []*op
	for _, o := range w.parked {
		if o.round == 0 {
			o.round = w.round
		}
		if !o.settle && !w.held(o) {
			ready = append(ready, o)
		}
	}
	if len(ready) == 0 || time.Now().Before(w.linger) {
		return nil
	}
	turn := w.turn(len(ready))
	if turn == later {
		w.linger = time.Now().Add(lingerFor)
		return nil
	}
	if turn %= len(ready); turn == 0 {
		return slices.MinFunc(ready, before) // as nearly always: sorting takes longer
	}
	slices.SortStableFunc(ready, before)
	return ready[turn]
}

// before orders operations by arrival, and those that arrived together by what they are.
func before(a, b *op) int {
	return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.order, b.order))
}

// turn returns which of n operations comes first.
func (w *world) turn(n int) int {
	w.choices++
	if !w.plan.random {
		return w.plan.Turns[w.choices]
	}
	turn := 0
	switch {
	case w.rand.IntN(oddLinger) == 0:
		turn = later
	case n > 1 && w.rand.IntN(oddTurn) == 0:
		turn = w.rand.IntN(n)
	}
	if turn != 0 {
		w.plan.Turns[w.choices] = turn
	}
	return turn
}

// step lets o happen, and waits until everything that follows from it has happened. Identical reads that arrived with o
// happen with it: the scheduler cannot tell which of them came first, and their senders may go on differently.
func (w *world) step(o *op) {
	w.current = nil
	w.observe() // what the user has done meanwhile
	if now := time.Now(); now.After(w.moved) {
		w.moved, w.busy = now, 0
	}
	w.busy++
	for _, twin := range w.twins(o) {
		w.release(twin)
	}
	synctest.Wait()
	w.observe()
	if w.busy%busyFor == 0 {
		w.pass()
	}
}

// pass lets time pass, and ends the holds that are due: else they end only when nothing can happen.
func (w *world) pass() {
	for _, h := range slices.Clone(w.holds) {
		if !h.ends(w).After(time.Now()) {
			w.lift(h)
		}
	}
	w.linger = time.Now().Add(lingerFor)
}

// twins returns o and the reads that arrived with it and ask for the same.
func (w *world) twins(o *op) []*op {
	if o.request == nil || o.event != nil || o.request.Mutates() || o.number != 0 {
		return []*op{o}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var twins []*op
	for _, other := range w.parked {
		if other.request != nil && other.event == nil && other.round == o.round && other.order == o.order {
			twins = append(twins, other)
		}
	}
	return twins
}

// release lets o happen.
func (w *world) release(o *op) {
	if !w.number(o) {
		return
	}
	w.mu.Lock()
	w.parked = slices.DeleteFunc(w.parked, func(other *op) bool { return other == o })
	if o.request != nil && o.event == nil {
		w.inFlight[o.request] = o
	}
	w.mu.Unlock()
	w.current, w.linger = o, time.Time{}
	w.mention(o)
	w.judgeRequest(o)
	v := w.verdictOn(o)
	if o.event != nil && o.event.Type == watch.Bookmark {
		w.listed[o.request] = true // The first bookmark ends the list.
	}
	if o.event != nil && o.event.Type != watch.Bookmark && v.Action == gate.Pass {
		o.process.sees(o.object(), o.revision())
	}
	o.verdict <- verdict{Verdict: v}
}

// number counts o, and finds the fault that happens to it. It reports false if the fault holds it back.
func (w *world) number(o *op) bool {
	if o.process == nil || o.process.other || o.number != 0 || o.event != nil && o.event.Type == watch.Bookmark {
		return true
	}
	at := atEvent
	if o.event == nil {
		at = atRead
		if o.writes() {
			at = atWrite
		} else if !o.reads() {
			return true
		}
	}
	w.counts[at]++
	o.number = w.counts[at]
	if w.phase != scripting {
		return true // What happens after the script is not compared, so a fault there proves nothing.
	}
	w.record.ops[at] = append(w.record.ops[at], o.signature())
	switch at {
	case atWrite:
		w.record.writeRevisions = append(w.record.writeRevisions, w.state.Revision)
	case atEvent:
		w.record.events = append(w.record.events, sight{o.object(), o.revision()})
		w.record.listed = append(w.record.listed, o.request.Query.Get("sendInitialEvents") == "true" &&
			!w.listed[o.request])
	}
	for i := range w.plan.Faults {
		if f := &w.plan.Faults[i]; f.Kind.place() == at && f.At == o.number {
			return w.strike(o, f)
		}
	}
	return true
}

// strike makes the fault happen at o. It reports false if o does not happen now.
func (w *world) strike(o *op, f *runFault) bool {
	o.fault = f
	w.record.struck++
	w.record.hits = append(w.record.hits, hit{f.Kind, f.At})
	w.record.places = append(w.record.places, o.signature())
	if f.Of != "" && f.Of != o.signature() {
		w.record.unfit = fmt.Sprintf("%v: here it is %q", *f, o.signature())
	}
	switch f.Kind {
	case staleRestart:
		o.process.nextLags = f.Revision
	case slowWatch:
		w.hold(&hold{events: true, idle: lagIdle, limit: lagLimit, fault: f})
	case stall:
		w.hold(&hold{events: true, requests: true, limit: stallFor, fault: f})
	case pauseLeader:
		w.hold(&hold{
			process: o.process, events: true, requests: true,
			idle: lagIdle, takeover: true, limit: pauseLimit, fault: f,
		})
	case hide:
		w.hold(&hold{
			events: true, resource: o.resource(), idle: lagIdle, hides: &sight{o.object(), o.revision()}, fault: f,
		})
	default:
		return true
	}
	if f.Kind == stall || f.Kind == pauseLeader || f.Kind == hide {
		w.tell(o.process.name(), fmt.Sprintf("%v", *f))
		return false
	}
	return true
}

// verdictOn returns what the gate does with o before it happens.
func (w *world) verdictOn(o *op) gate.Verdict {
	if o.fault != nil && o.fault.Kind != hide {
		if o.fault.Kind == crashBefore {
			o.process.restart = true
			o.process.kill()
		}
		return o.fault.before()
	}
	if o.process == nil || o.request == nil || o.event != nil {
		return gate.Verdict{}
	}
	version := o.request.Query.Get("resourceVersion")
	if o.process.lagging != 0 && o.reads() && version == "0" {
		return gate.Verdict{AsOf: o.process.lagging}
	}
	if w.mustRelist(o) {
		return runFault{Kind: readExpired}.before()
	}
	return gate.Verdict{}
}

// mustRelist reports whether o opens a watch that fails because the history has ended.
func (w *world) mustRelist(o *op) bool {
	query := o.request.Query
	if w.phase != relisting || o.request.Verb != "watch" || o.process.other || query.Get("resourceVersion") == "" {
		return false
	}
	key := o.process.name() + o.cluster + o.request.Path + query.Get("labelSelector") + query.Get("fieldSelector")
	expired := !w.relist[key]
	w.relist[key] = true
	return expired
}
