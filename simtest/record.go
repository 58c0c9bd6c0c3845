package simtest

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/gate"
)

// run is what is known about a run after it.
type run struct {
	plan    *runPlan
	ops     [3][]string // signatures of the program's writes, reads and events, in order
	changes []change
	first   int64 // the revision of the start
	steps   int   // of the user

	manyWorkers bool                      // see [Env.Workers]
	transports  []weak.Pointer[transport] // of all processes

	writeRevisions []int64 // the revision before each of the program's writes
	events         []sight // the events in ops
	listed         []bool  // of each event in ops, whether it is part of a list in the form of a watch

	settled  []*end // the states in which the user has seen the program settle
	end      *end
	findings []Finding
	story    []*moment
	trace    []string // of everything that happened, if it was asked for

	struck int      // faults that happened
	hits   []hit    // likewise, with their places
	places []string // the signatures of what the hits were at
	unfit  string   // why a fault's place is not the expected one
	pruned bool     // it was cut short, because another run has gone on from the same state
	died   *death   // at the first crash, if another run could go on from there
	broken error    // the run could not be performed
}

// mark writes into the plan of a run what tells later whether the plan still leads to the same run.
func (r *run) mark(base *run) {
	r.plan = r.plan.copy()
	r.plan.Base = base.hash()
	for i := range r.plan.Faults {
		f := &r.plan.Faults[i]
		if n := slices.Index(r.hits, hit{f.Kind, f.At}); n >= 0 {
			f.Of = r.places[n]
		}
	}
}

// hash returns a hash of the program's writes.
func (r *run) hash() uint32 {
	h := fnv.New32a()
	for _, signature := range r.ops[atWrite] {
		fmt.Fprintln(h, signature)
	}
	return h.Sum32()
}

// sight is a state of an object that a process was shown.
type sight struct {
	id
	revision int64
}

// author tells who made a change.
type author int

const (
	byUser author = iota
	byProgram
	byOthers
)

// change is one committed write to an object that matters.
type change struct {
	id
	revision         int64
	created, deleted bool
	doomed           bool // it got its deletion timestamp
	by               author
	generated        string // metadata.generateName
	process          int    // the number of the process, if it was the program's or another's
	alias            string // its name with what has the UIDs in place of them, "" if there are none
	owner            owner  // the first that is there and is not being deleted
	settles          int    // how often the user had seen the program settle
}

// owner is an object that another one refers to as its owner.
type owner struct {
	uid string
	id  // with a name that is the same in all runs
}

// moment is one line of a story.
type moment struct {
	at     time.Duration // since the start
	actor  string
	text   string
	result string
	write  int // the number of the program's write; 0 if it is none
	fault  *runFault
	minor  bool // only the page shows it
}

// String returns the line.
func (m *moment) String() string {
	var b strings.Builder
	if m.write != 0 {
		fmt.Fprintf(&b, "write %d, ", m.write)
	}
	if m.actor != "" {
		b.WriteString(m.actor + ": ")
	}
	b.WriteString(m.text)
	if m.result != "" {
		b.WriteString(": " + m.result)
	}
	return b.String()
}

// sender returns the process that sent o, or nil if it was the user.
func (o *op) sender() *process {
	if o == nil {
		return nil
	}
	return o.process
}

// author returns who made a change. A deletion that finalizers delayed is that of whoever asked for it.
func (w *world) author(c *committed) author {
	by := byProgram
	if p := w.current.sender(); p == nil {
		by = byUser
	} else if p.other {
		by = byOthers
	}
	i := c.id()
	if first, ok := w.deleters[i]; ok && c.Object == nil {
		delete(w.deleters, i)
		return first
	}
	if _, ok := w.deleters[i]; !ok && c.Object != nil && terminating(c.Object) {
		w.deleters[i] = by
	}
	return by
}

// doomed reports whether the write is a delete that leaves the object until its finalizers are gone.
func doomed(c *committed) bool {
	return c.Object != nil && c.Previous != nil && terminating(c.Object) && !terminating(c.Previous)
}

// terminating reports whether an object has a deletion timestamp.
func terminating(obj runtime.Object) bool {
	m, err := meta.Accessor(obj)
	return err == nil && m.GetDeletionTimestamp() != nil
}

// tell adds a line to the story.
func (w *world) tell(actor, text string) *moment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tellLocked(actor, text)
}

func (w *world) tellLocked(actor, text string) *moment {
	m := &moment{at: time.Since(w.began), actor: actor, text: text}
	w.story = append(w.story, m)
	return m
}

// mention adds o to the story and to the trace.
func (w *world) mention(o *op) {
	// Later, clients list again at times of their own choice. Recorders of events walk through maps.
	if w.limits.trace && w.phase == scripting && (o.request == nil || !bookkeeping(o.resource())) {
		w.record.trace = append(w.record.trace, fmt.Sprintf("%v %s", time.Since(w.began), o.order))
	}
	switch {
	case o.request == nil:
		w.tell("user", o.step)
	case o.writes():
		o.moment = w.tell(o.process.name(), o.signature())
		o.moment.fault = o.fault
		if !o.process.other {
			o.moment.write = o.number
		}
		if o.fault != nil {
			o.moment.result = outcomes[o.fault.Kind]
		}
	case o.fault != nil:
		o.moment = w.tell(o.process.name(), o.signature())
		o.moment.fault, o.moment.result = o.fault, outcomes[o.fault.Kind]
	case w.limits.trace:
		o.moment = w.tell(o.process.name(), o.signature())
		o.moment.minor = true
	}
}

// outcomes tell in a story what became of an operation with a fault.
var outcomes = map[faultKind]string{
	crashBefore:     "the process is killed before it is sent",
	crashAfter:      "applied; the process is killed before it gets the answer",
	staleRestart:    "applied; the process is killed before it gets the answer",
	lostAnswer:      "applied; the answer is lost",
	timeout:         "applied; the answer is 504, timeout",
	truncatedAnswer: "applied; the answer breaks off",
	reset:           "the connection breaks before it is applied",
	conflict:        "the answer is 409, conflict",
	tooManyRequests: "the answer is 429, too many requests",
	serverError:     "the answer is 500, internal error",
	slowWatch:       "applied; from now on no watch brings anything",
	readExpired:     "the answer is 410, expired",
	readError:       "the answer is 500, internal error",
	readReset:       "the connection breaks",
	eventExpired:    "in its place the watch ends with 410, expired",
	eventClose:      "before it the watch ends",
	eventGarbage:    "in its place comes what cannot be decoded",
	hide:            "held back until the watch ends with 410, expired",
	stall:           "",
	pauseLeader:     "",
}

// note adds the answer to o's line. The caller holds the lock.
func (w *world) note(o *op, a gate.Answer) {
	if o.stranger != "" && a.Code < 300 && !slices.Contains(w.scenario.Allow, RuleIdentity) {
		w.findings = append(w.findings, Finding{Rule: RuleIdentity, Subject: o.signature(), Text: o.stranger})
	}
	if o.moment == nil {
		return
	}
	if o.request.Name == "" && a.Name != "" {
		o.moment.text = strings.TrimSuffix(o.moment.text+"/", " /") + a.Name
	}
	if rest, applied := strings.CutPrefix(o.moment.result, "applied"); a.Code >= 300 && (applied || rest == "") {
		o.moment.result = fmt.Sprint(a.Code, rest) // It was refused.
	}
}
