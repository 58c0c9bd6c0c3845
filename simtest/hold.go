package simtest

import (
	"fmt"
	"time"
)

const (
	// lagIdle is how long nothing must change before a replica catches up.
	lagIdle = 10 * time.Second
	// lagLimit is how long a replica lags at most, if the program does not rest meanwhile.
	lagLimit = time.Minute
	// stallFor is how long a stall lasts.
	stallFor = 10 * time.Minute
	// pauseLimit ends a pauseLeader if no other process gets the lease.
	pauseLimit = 10 * time.Minute
)

// hold keeps operations of the program from happening.
type hold struct {
	process          *process // nil: any of the program
	requests, events bool
	resource         resource // zero: any
	after            int64    // events up to this revision pass

	began    time.Time
	idle     time.Duration // ends when nothing has changed for so long; 0 does not end it
	limit    time.Duration // ends after so long
	takeover bool          // idle counts only once another process has got the lease

	// hides, if not nil, is a state that the program must not see. The hold ends when the object has another state. It
	// does not keep the user from settling, and idle counts only after the script. The events that were held then end
	// their watches.
	hides *sight
	fault *runFault
}

// hold puts h into effect.
func (w *world) hold(h *hold) {
	h.began = time.Now()
	if h.limit == 0 {
		h.limit = restWithin
	}
	w.holds = append(w.holds, h)
}

// keeps reports whether o must wait.
func (h *hold) keeps(o *op) bool {
	p := o.process
	if p == nil || p.other || h.process != nil && h.process != p || p.dead.Load() && !h.takeover {
		return false
	}
	if o.event == nil {
		return h.requests
	}
	if !h.events || h.resource.Resource != "" && h.resource != o.resource() {
		return false
	}
	return o.revision() > h.after
}

func (w *world) held(o *op) bool {
	for _, h := range w.holds {
		if h.keeps(o) {
			return true
		}
	}
	return false
}

// ends returns when the hold ends if nothing changes any more.
func (h *hold) ends(w *world) time.Time {
	end := h.began.Add(h.limit)
	switch {
	case h.hides != nil && w.state.objects[h.hides.id].revision != h.hides.revision:
		return time.Now()
	case h.hides != nil && !w.scripted.Load():
		return end
	case h.process != nil && h.process.dead.Load() && !h.takeover:
		return time.Now()
	}
	since := w.lastChange
	if since.Before(h.began) {
		since = h.began
	}
	if h.idle > 0 && (!h.takeover || h.process.deposed) && since.Add(h.idle).Before(end) {
		end = since.Add(h.idle)
	}
	return end
}

func (w *world) lift(h *hold) {
	w.lastChange = time.Now()
	for i := range w.holds {
		if w.holds[i] == h {
			w.holds = append(w.holds[:i:i], w.holds[i+1:]...)
			break
		}
	}
	if h.process != nil {
		h.process.lagging = 0
	}
	if h.hides != nil {
		w.mu.Lock()
		for _, o := range w.parked {
			if h.keeps(o) && o.event != nil {
				o.fault = &runFault{Kind: eventExpired}
			}
		}
		w.mu.Unlock()
	}
	if h.fault != nil {
		w.tell("", fmt.Sprintf("the %s of %s %d is over", h.fault.Kind, h.fault.Kind.place(), h.fault.At))
	} else {
		w.tell("", "the held operations go on")
	}
}
