package trace

// spool has steps of all subjects in the order in which they came.
type spool struct {
	steps []spooled // of fixed capacity; those behind its length have no more than room in their slices
	// first is the place of the first one, counted from the begin of the recording.
	first uint64
}

type spooled struct {
	of   Subject
	step Step
}

// spoolSize is the number of steps of a spool. Two spools fit into a processor's cache.
const spoolSize = 512

func newSpool() *spool { return &spool{steps: make([]spooled, 0, spoolSize)} }

// Place is where a step is, so that more can be added to it. run is the number of its reconcile, if it is one.
type Place struct{ at, number, run uint64 }

// nextLocked returns the number of a new step.
func (r *Recorder) nextLocked() uint64 {
	r.number++
	return r.number
}

// addLocked returns a new step of s with that number. It may unlock meanwhile.
func (r *Recorder) addLocked(s Subject, number uint64) *Step {
	for len(r.fresh.steps) == spoolSize {
		if r.spare != nil {
			r.full = r.fresh
			r.renewLocked()
			go r.fileFull()
			break
		}
		// Steps come faster than they are filed.
		r.mu.Unlock()
		r.fileFull()
		r.mu.Lock()
	}
	f := r.fresh
	f.steps = f.steps[:len(f.steps)+1]
	e := &f.steps[len(f.steps)-1]
	e.of, e.step.Number = s, number
	return &e.step
}

// renewLocked makes the spare spool the fresh one.
func (r *Recorder) renewLocked() {
	r.spare.first = r.fresh.first + uint64(len(r.fresh.steps))
	r.fresh, r.spare = r.spare, nil
}

// placeLocked returns the place of the newest step.
func (r *Recorder) placeLocked() Place {
	f := r.fresh
	last := len(f.steps) - 1
	return Place{f.first + uint64(last), f.steps[last].step.Number, f.steps[last].step.Run}
}

// addTo adds to a step of s. It reports whether the step was still there. If listeners are to hear of it, they do.
func (r *Recorder) addTo(s Subject, p Place, tell bool, more func(*Step)) bool {
	r.mu.Lock()
	for _, spool := range [...]*spool{r.fresh, r.full} {
		if spool == nil || p.at < spool.first || p.at-spool.first >= uint64(len(spool.steps)) {
			continue
		}
		step := &spool.steps[p.at-spool.first].step
		more(step)
		r.endLocked(s, step, tell)
		return true
	}
	r.mu.Unlock()
	r.filing.Lock() // Who took it to file it has done so now.
	step := r.findLocked(s, func(s *Step) bool { return s.Number == p.number })
	if step == nil {
		r.filing.Unlock()
		return false
	}
	more(step)
	c := copied(step)
	r.filing.Unlock()
	if tell {
		r.tell(s, &c)
	}
	return true
}

// fileFull files the full spool, if there is one.
func (r *Recorder) fileFull() {
	r.filing.Lock()
	defer r.filing.Unlock()
	r.mu.Lock()
	full := r.full
	r.full = nil
	r.mu.Unlock()
	if full != nil {
		r.fileLocked(full)
	}
}

// lockFiled locks filing when all steps are filed.
func (r *Recorder) lockFiled() {
	r.filing.Lock()
	for {
		r.mu.Lock()
		s := r.full
		if r.full = nil; s == nil {
			if s = r.fresh; len(s.steps) == 0 {
				r.mu.Unlock()
				return
			}
			r.renewLocked()
		}
		r.mu.Unlock()
		r.fileLocked(s)
	}
}

// fileLocked moves the steps of a spool to their subjects.
func (r *Recorder) fileLocked(s *spool) {
	for n := range s.steps {
		e := &s.steps[n]
		switch {
		case e.step.Kind == Changed:
			r.keepStatesLocked(&e.step)
		case e.step.Kind == Handled:
			r.handled[Flow{e.of.Resource, e.step.Other.Controller}]++
		case e.step.Kind == Wrote && e.step.Other.Controller != "":
			r.written[Flow{e.of.Resource, e.step.Other.Controller}]++
		}
		slot := r.slotLocked(e.of)
		e.step, *slot = *slot, e.step
		if e.step.Kind == Ran && e.step.Run == slot.Run {
			// A reconcile that writes or logs very much takes the place of other steps, not of its own begin.
			slot = r.slotLocked(e.of)
			e.step, *slot = *slot, e.step
		}
		e.of, e.step = Subject{}, Step{Keys: e.step.Keys[:0], Causes: cleared(e.step.Causes)}
	}
	s.steps = s.steps[:0]
	r.mu.Lock()
	r.spare = s
	r.mu.Unlock()
}

// cleared returns the empty slice in the same place, which refers to nothing.
func cleared[T any](s []T) []T {
	clear(s)
	return s[:0]
}

// endLocked unlocks and, if tell is set, calls the listeners with step.
func (r *Recorder) endLocked(s Subject, step *Step, tell bool) {
	if !tell || r.listeners.Load() == nil {
		r.mu.Unlock()
		return
	}
	c := copied(step)
	r.mu.Unlock()
	r.tell(s, &c)
}

// tell calls the listeners.
func (r *Recorder) tell(s Subject, step *Step) {
	if listeners := r.listeners.Load(); listeners != nil {
		for _, f := range *listeners {
			(*f)(s, step)
		}
	}
}
