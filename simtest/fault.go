package simtest

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/gate"
)

// faultKind is what goes wrong.
type faultKind string

// The faults at a write of the program.
const (
	// crashBefore kills the process; the write has not reached the server.
	crashBefore faultKind = "crash before"
	// crashAfter applies the write and kills the process before it gets the answer.
	crashAfter faultKind = "crash after"
	// staleRestart is crashAfter, and the next process reads from a replica of the API server that is at
	// Revision until nothing has changed for ten seconds, at most a minute.
	staleRestart faultKind = "stale restart"
	// lostAnswer applies the write and breaks the connection.
	lostAnswer faultKind = "answer lost"
	// timeout applies the write and answers that the time is up.
	timeout faultKind = "timeout"
	// truncatedAnswer applies the write and breaks the connection in the middle of the answer.
	truncatedAnswer faultKind = "answer truncated"
	// reset breaks the connection; the write has no effect.
	reset faultKind = "connection reset"
	// conflict answers 409 to a write that is not a create; the write has no effect.
	conflict faultKind = "conflict"
	// tooManyRequests answers 429; the write has no effect.
	tooManyRequests faultKind = "too many requests"
	// serverError answers 500; the write has no effect.
	serverError faultKind = "server error"
	// slowWatch applies the write. From then on the program sees no event of a watch until nothing has changed for ten
	// seconds, at most a minute.
	slowWatch faultKind = "slow watch"
	// stall holds the write, and all that the program asks and watches, for ten minutes.
	stall faultKind = "stall"
	// pauseLeader holds the write, and all that this process asks and watches, until another process of the program has
	// got the lease and nothing has changed for ten seconds.
	pauseLeader faultKind = "leader paused"
)

// The faults at a read of the program: a get, list or watch.
const (
	// readExpired answers 410.
	readExpired faultKind = "read expired"
	// readError answers 500.
	readError faultKind = "read error"
	// readReset breaks the connection.
	readReset faultKind = "read reset"
)

// The faults at an event of a watch.
const (
	// eventExpired ends the watch with the error that its version has expired, so that the program lists again.
	eventExpired faultKind = "watch expired"
	// eventClose ends the watch in an orderly way before the event.
	eventClose faultKind = "watch closed"
	// eventGarbage sends bytes that cannot be decoded in place of the event.
	eventGarbage faultKind = "garbage event"
	// hide holds the event, and all later ones of that resource, until the object changes again or, after the script,
	// nothing has changed for ten seconds. The watch then ends with the error that its version has expired: the program
	// lists, and never sees the state.
	hide faultKind = "state hidden"
)

// place is what a fault happens at.
type place int

const (
	atWrite place = iota
	atRead
	atEvent
)

// String returns what stories call it.
func (p place) String() string { return [...]string{"write", "read", "event"}[p] }

func (k faultKind) place() place {
	switch k {
	case readExpired, readError, readReset:
		return atRead
	case eventExpired, eventClose, eventGarbage, hide:
		return atEvent
	}
	return atWrite
}

// crashes reports whether the fault kills the process.
func (k faultKind) crashes() bool { return k == crashBefore || k == crashAfter || k == staleRestart }

// runFault is one thing that goes wrong in a run.
type runFault struct {
	Kind faultKind `json:"k"`

	// At is the number, from 1, of the program's write, read or event, whichever the fault happens at.
	At int `json:"n"`

	// Of is what the run without faults has at that place. A run that has something else there does not fit.
	Of string `json:"o,omitempty"`

	// Revision is the replica's revision of a staleRestart.
	Revision int64 `json:"r,omitempty"`
}

// String describes the fault.
func (f runFault) String() string {
	s := fmt.Sprintf("%s at %s %d", f.Kind, f.Kind.place(), f.At)
	if f.Of != "" {
		s += ", " + f.Of
	}
	if f.Revision != 0 {
		s += fmt.Sprintf(", revision %d", f.Revision)
	}
	return s
}

// before returns what the gate does with the request or event that the fault happens at, before it has an effect.
func (f runFault) before() gate.Verdict {
	switch f.Kind {
	case crashBefore, reset, readReset:
		return gate.Verdict{Action: gate.Drop}
	case conflict:
		return gate.FailWith(apierrors.NewConflict(schema.GroupResource{}, "", errors.New("injected by simtest")))
	case tooManyRequests:
		return gate.FailWith(apierrors.NewTooManyRequests("injected by simtest", 1))
	case serverError, readError:
		return gate.FailWith(apierrors.NewInternalError(errors.New("injected by simtest")))
	case readExpired, eventExpired, hide:
		return gate.FailWith(apierrors.NewResourceExpired("injected by simtest"))
	case eventClose:
		return gate.Verdict{Action: gate.Close}
	case eventGarbage:
		return gate.Verdict{Action: gate.Garbage}
	}
	return gate.Verdict{}
}

// after returns what the gate does with the answer.
func (f runFault) after() gate.Verdict {
	switch f.Kind {
	case crashAfter, staleRestart, lostAnswer:
		return gate.Verdict{Action: gate.Drop}
	case truncatedAnswer:
		return gate.Verdict{Action: gate.Truncate}
	case timeout:
		return gate.Verdict{Action: gate.Fail, Status: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
			Message: "injected by simtest",
		}}
	}
	return gate.Verdict{}
}

// runPlan is what makes a run repeatable: faults, and where the schedule departs from first in, first out.
type runPlan struct {
	Faults []runFault `json:"f,omitempty"`

	// Seed generates UIDs and the suffixes of generated names.
	Seed uint64 `json:"s,omitempty"`

	// Turns are the departures: the number of the choice, and which of the operations in order comes first.
	Turns map[int]int `json:"t,omitempty"`

	// Skip are the user's steps that are left out.
	Skip []int `json:"u,omitempty"`

	// Processes is how many processes of the program run at once; 0 is 1.
	Processes int `json:"p,omitempty"`

	// OneWorker lets [Env.Workers] return 1.
	OneWorker bool `json:"w,omitempty"`

	// Base is a hash of the writes without faults when the plan had a finding; 0 if it is not known.
	Base uint32 `json:"b,omitempty"`

	random bool // Turns are chosen during the run, from Seed
}

func (p *runPlan) pauses() bool {
	return slices.ContainsFunc(p.Faults, func(f runFault) bool { return f.Kind == pauseLeader })
}

// hides reports whether a state is hidden from the program.
func (p *runPlan) hides() bool {
	return slices.ContainsFunc(p.Faults, func(f runFault) bool { return f.Kind == hide })
}

func (p *runPlan) skips(step int) bool { return slices.Contains(p.Skip, step) }

// token returns the plan as one word, for -sim.replay.
func (p *runPlan) token() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // cannot fail: numbers and strings
	}
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // the level is valid
	_, _ = w.Write(data)
	_ = w.Close()
	return base64.RawURLEncoding.EncodeToString(b.Bytes())
}

// parsePlan is the inverse of token.
func parsePlan(token string) (*runPlan, error) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		rest := bytes.NewReader(data)
		data, err = io.ReadAll(io.LimitReader(flate.NewReader(rest), 1<<20))
		if err == nil && rest.Len() > 0 {
			err = errors.New("there is more after its end")
		}
	}
	p := &runPlan{}
	if err == nil {
		err = json.Unmarshal(data, p)
	}
	if err == nil {
		err = p.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("the replay token is incomplete or was changed: %w", err)
	}
	return p, nil
}

// mostProcesses is how many processes of the program a plan may run at once.
const mostProcesses = 2

// validate reports what no run can do.
func (p *runPlan) validate() error {
	for _, f := range p.Faults {
		if _, known := outcomes[f.Kind]; !known {
			return fmt.Errorf("there is no fault %q", f.Kind)
		}
		if f.At < 1 || f.Revision < 0 {
			return fmt.Errorf("there is no %v", f)
		}
	}
	for choice, turn := range p.Turns {
		if choice < 1 || turn < later {
			return fmt.Errorf("there is no turn %d at choice %d", turn, choice)
		}
	}
	if i := slices.IndexFunc(p.Skip, func(step int) bool { return step < 1 }); i >= 0 {
		return fmt.Errorf("there is no step %d", p.Skip[i])
	}
	if p.Processes < 0 || p.Processes > mostProcesses {
		return fmt.Errorf("there are no runs of %d processes", p.Processes)
	}
	return nil
}
