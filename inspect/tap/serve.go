package tap

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// ServeHTTP answers GET with what the Tap does, as JSON. POST changes it, and answers with the new one:
//
//	?do=pause
//	?do=open&delay=DURATION          delay is optional
//	?do=step&stage=STAGE             the oldest step of the stage, or of all without it
//	?do=release&id=ID                one step
//	?do=inject&fault=FAULT           at the next write
//
// Requests that a page of another origin sends are refused.
func (t *Tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.NewCrossOriginProtection().Handler(http.HandlerFunc(t.serve)).ServeHTTP(w, r)
}

func (t *Tap) serve(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		if err := t.do(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "use GET or POST", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(t.state()) // The reader has gone.
}

func (t *Tap) do(r *http.Request) error {
	q := r.URL.Query()
	switch what := q.Get("do"); what {
	case "pause":
		t.Pause()
	case "open":
		delay := time.Duration(0)
		if text := q.Get("delay"); text != "" {
			var err error
			if delay, err = time.ParseDuration(text); err != nil || delay < 0 {
				return fmt.Errorf("delay %q: want a duration such as 500ms", text)
			}
		}
		t.Open(delay)
	case "step":
		if stage := stage(q.Get("stage")); !t.step(stage) {
			return fmt.Errorf("nothing is held up at stage %q", stage)
		}
	case "release":
		id, err := strconv.ParseUint(q.Get("id"), 10, 64)
		if err != nil || !t.releaseOne(id) {
			return fmt.Errorf("no step with the ID %q is held up", q.Get("id"))
		}
	case "inject":
		return t.inject(fault(q.Get("fault")))
	default:
		return fmt.Errorf("do=%q: want pause, open, step, release or inject", what)
	}
	return nil
}
