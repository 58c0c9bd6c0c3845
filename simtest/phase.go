package simtest

import (
	"fmt"
	"slices"
	"time"
)

// phase is how far a run is.
type phase int

const (
	// scripting lasts until the program has settled after the script.
	scripting phase = iota
	// relisting fails every watch that is opened with "expired", once, so that the program lists again.
	relisting
	// restarting follows a cold restart.
	restarting
	// stopping lasts until all processes have returned.
	stopping
	over
)

// deadline returns when the scheduler must act although nothing arrives. If that is now, it acts, and reports true.
func (w *world) deadline() (next time.Time, acted bool) {
	now := time.Now()
	next = w.began.Add(restWithin)
	if !now.Before(next) {
		w.giveUp(RuleRest, "time", fmt.Sprintf("objects still change after %v", restWithin))
		return next, true
	}
	earliest := func(t time.Time) bool {
		if t.Before(next) {
			next = t
		}
		return !now.Before(t)
	}
	if w.linger.After(now) {
		earliest(w.linger)
		return next, false
	}
	for _, h := range w.holds {
		if earliest(h.ends(w)) {
			w.lift(h)
			return now, true
		}
	}
	for _, p := range w.processes {
		if p.ctx.Err() != nil && !p.stopped.Load() && earliest(p.stopBy) {
			text := fmt.Sprintf("Run has not returned %v after its context ended", stopWithin)
			if !p.built.Load() {
				text = "Build has not returned. It must only make the program, and neither run it nor wait for anything"
			}
			w.giveUp(RuleStop, "stop", p.name()+": "+text)
			return now, true
		}
	}
	quiet := w.scenario.quiet()
	if w.phase == relisting {
		quiet = max(quiet, watchLength+time.Minute)
	}
	if w.settling() && earliest(w.lastChange.Add(quiet)) {
		w.settled()
		return now, true
	}
	return next, false
}

// settling reports whether somebody waits for the program to settle.
func (w *world) settling() bool {
	if w.phase == stopping || w.phase == over {
		return false
	}
	for _, h := range w.holds {
		if h.hides == nil || w.scripted.Load() {
			return false
		}
	}
	if w.scripted.Load() {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.parked, func(o *op) bool { return o.settle })
}

// settled goes on after nothing has changed for long enough.
func (w *world) settled() {
	w.lastChange = time.Now()
	if !w.scripted.Load() {
		w.mu.Lock()
		i := slices.IndexFunc(w.parked, func(o *op) bool { return o.settle })
		o := w.parked[i]
		w.parked = slices.Delete(w.parked, i, i+1)
		w.mu.Unlock()
		w.settles++
		w.record.settled = append(w.record.settled, w.now())
		o.verdict <- verdict{}
		return
	}
	if w.judgeCaches(); w.failed() {
		return
	}
	w.phase++
	switch w.phase {
	case relisting:
		w.end()
		w.tell("", "nothing changes any more; when a watch ends, the program must list again")
		w.relist = map[string]bool{}
	case restarting:
		if !w.limits.cold {
			w.phase = stopping
			w.stop()
			return
		}
		w.tell("", "nothing changes any more; the program stops and starts again")
		for _, p := range w.live() {
			p.restart = true
			p.stop()
		}
	case stopping:
		w.stop()
	}
}

// now returns the state in comparable form.
func (w *world) now() *end {
	e := normalize(w.state, w.first)
	w.addOutside(e)
	e.settles, e.told = w.settles, len(w.story)
	return e
}

// end records the state at the end of the script.
func (w *world) end() {
	w.record.end = w.now()
	if w.scenario.Matches != nil {
		if err := holds(w.scenario.Matches, w.state); err != nil {
			w.fail(RuleMatches, "", "at the end: "+err.Error())
		}
	}
}

// holds calls a function of the scenario that judges a state. Its panic is its verdict: it may rely on an object that
// is not there, for example because Check tries what happens without one of the user's steps.
func holds(judge func(*State) error, s *State) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return judge(s)
}

// stop asks all processes to end.
func (w *world) stop() {
	for _, p := range w.processes {
		if !p.stopped.Load() {
			p.stop()
		}
	}
}
