package tap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// stage is where steps are held up.
type stage string

const (
	atWrite stage = "write" // a write, before the server executes it
	atEvent stage = "event" // an event of a watch, before it is sent
	atDelta stage = "delta" // a change of a cache, before its handlers hear of it
	atKey   stage = "key"   // a key that a worker has taken, before its reconcile
)

// fault is what happens to a write instead of an answer.
type fault string

const (
	// conflict refuses the write with 409.
	conflict fault = "conflict"
	// lostAnswer executes it, and breaks the connection.
	lostAnswer fault = "lost answer"
	// cutWatch executes it, and ends the watch that would bring the next event.
	cutWatch fault = "cut watch"
	// crash executes it, and ends the program before it gets the answer.
	crash fault = "crash"
)

// Options configures a [Tap].
type Options struct {
	// Match reports whether a write, or the events of a watch, are held up. It must be safe for concurrent use. Nil
	// means those of every client. Whatever it reports, leases, recorded Events, and reviews of tokens and permissions
	// are never held up, nor are requests of kubectl, with which people make the changes that they watch.
	Match func(*gate.Request) bool
	// Crash ends the program and starts it anew. Nil means that the fault "crash" is not offered.
	Crash func()
}

// Tap holds steps up. At first it is open: nothing is held up.
//
// Concurrency: all methods may be called from any goroutine.
type Tap struct {
	o Options

	mu sync.Mutex
	// program is done when the program stops; nil before Attach.
	program context.Context
	// paused holds all steps up; delay makes each wait if it is not paused.
	paused bool
	delay  time.Duration
	// waiting are the steps that are held up, oldest first.
	waiting []*step
	number  uint64
	// spans are the last times in which some step was held up, oldest first. The end of the present one is not known.
	spans []span
	// fault is that of the next write, and cut reports whether the next event ends its watch.
	fault fault
	cut   bool
	// told has the last faults that happened, oldest first.
	told []string
}

// step is a step that is held up.
type step struct {
	waiting
	pass chan struct{} // closed when it may go on; nothing is sent
}

// span is a time from the hold of a step until no step was held up any more.
type span struct{ from, to time.Time }

// waiting is what the page shows of a step that is held up.
type waiting struct {
	ID    uint64    `json:"id"`
	Stage stage     `json:"stage"`
	Text  string    `json:"text"`
	Since time.Time `json:"since"`
	// Resource is the name of the cache that an event or a delta is for, as in a Pipeline. Controller is that of a key.
	Resource   string `json:"resource,omitempty"`
	Controller string `json:"controller,omitempty"`
}

// state is what a Tap does at one moment.
type state struct {
	Paused  bool          `json:"paused"`
	Delay   time.Duration `json:"delay,omitempty"`
	Waiting []waiting     `json:"waiting"`
	// Fault is that of the next write; empty if there is none.
	Fault fault `json:"fault,omitempty"`
	// Faults are those that can be set.
	Faults []fault `json:"faults"`
	// Happened are the last faults that happened, oldest first.
	Happened []string `json:"happened,omitempty"`
}

// mostTold and mostSpans bound the faults and the spans that are remembered.
const mostTold, mostSpans = 20, 1000

// New returns a Tap that is open.
func New(o Options) *Tap {
	return &Tap{o: o}
}

// holds reports whether a write or a watch is held up.
func (t *Tap) holds(r *gate.Request) bool {
	switch {
	case r.Resource == "leases", r.Resource == "events",
		r.Group == "authentication.k8s.io", r.Group == "authorization.k8s.io",
		strings.HasPrefix(r.UserAgent, "kubectl/"):
		return false
	}
	return t.o.Match == nil || t.o.Match(r)
}

// Attach has the Tap hold up the deltas and keys that are reported to r, that of an Inspector, until ctx is done: when
// the program stops. A write that is held up then has no effect, and its connection breaks: the program need not wait
// for an answer.
func (t *Tap) Attach(ctx context.Context, r *trace.Recorder) {
	t.mu.Lock()
	t.program = ctx
	t.mu.Unlock()
	r.Hold(func(kind trace.Kind, s trace.Subject, event, form string) {
		if kind == trace.Changed {
			text := event + " " + s.String() + trace.OfForm(form)
			t.wait(ctx, waiting{Stage: atDelta, Text: text, Resource: cacheName(s.Resource, form)})
		} else {
			t.wait(ctx, waiting{Stage: atKey, Text: s.String(), Controller: s.Controller})
		}
	})
}

// Pause holds up every step from now on.
func (t *Tap) Pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = true
}

// Open lets all steps through, each after delay. Zero means at once.
func (t *Tap) Open(delay time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused, t.delay = false, delay
	for _, s := range t.waiting {
		close(s.pass)
	}
	t.setWaitingLocked(nil)
}

// setWaitingLocked replaces the steps that are held up.
func (t *Tap) setWaitingLocked(steps []*step) {
	switch now := time.Now(); {
	case len(t.waiting) == 0 && len(steps) > 0:
		t.spans = append(t.spans[max(0, len(t.spans)+1-mostSpans):], span{from: now})
	case len(t.waiting) > 0 && len(steps) == 0:
		t.spans[len(t.spans)-1].to = now
	}
	t.waiting = steps
}

// Held returns how much of the last d passed while a step was held up. [inspect.Inspector] leaves it out of the times
// that it shows.
func (t *Tap) Held(d time.Duration) (held time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for _, s := range slices.Backward(t.spans) {
		to := s.to
		if to.IsZero() {
			to = now
		}
		if now.Sub(to) >= d {
			break
		}
		held += min(to.Sub(s.from), d-now.Sub(to))
	}
	return held
}

// step lets the oldest step of a stage through; of any if stage is empty. It reports whether there was one.
func (t *Tap) step(stage stage) bool {
	return t.release(func(s *step) bool { return stage == "" || s.Stage == stage })
}

// releaseOne lets one step through. It reports whether there was such a step.
func (t *Tap) releaseOne(id uint64) bool { return t.release(func(s *step) bool { return s.ID == id }) }

func (t *Tap) release(match func(*step) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.waiting, match)
	if i < 0 {
		return false
	}
	close(t.waiting[i].pass)
	t.setWaitingLocked(slices.Delete(t.waiting, i, i+1))
	return true
}

// inject sets the fault of the next write that is let through. The empty fault takes it back.
//
// Errors: a fault that is not offered.
func (t *Tap) inject(f fault) error {
	if f != "" && !slices.Contains(t.faults(), f) {
		return fmt.Errorf("there is no fault %q; there are %q", f, t.faults())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = f
	return nil
}

func (t *Tap) faults() []fault {
	faults := []fault{conflict, lostAnswer, cutWatch}
	if t.o.Crash != nil {
		faults = append(faults, crash)
	}
	return faults
}

// state returns what the Tap does now.
func (t *Tap) state() state {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := state{
		Paused: t.paused, Delay: t.delay, Fault: t.fault, Faults: t.faults(), Waiting: []waiting{},
		Happened: slices.Clone(t.told),
	}
	for _, each := range t.waiting {
		s.Waiting = append(s.Waiting, each.waiting)
	}
	return s
}

// wait returns when the step w may go on, or ctx is done. It reports whether the step may go on.
func (t *Tap) wait(ctx context.Context, w waiting) bool {
	t.mu.Lock()
	if !t.paused && t.delay == 0 {
		t.mu.Unlock()
		return true
	}
	var late <-chan time.Time // nil if paused
	if !t.paused {
		late = time.After(t.delay)
	}
	t.number++
	w.ID, w.Since = t.number, time.Now()
	s := &step{w, make(chan struct{})}
	t.setWaitingLocked(append(t.waiting, s))
	t.mu.Unlock()
	select {
	case <-s.pass:
		return true
	case <-late:
		t.releaseOne(s.ID)
		return true
	case <-ctx.Done():
		t.releaseOne(s.ID)
		return false
	}
}

// Gate returns the gate of the API server, which holds up writes and events.
func (t *Tap) Gate() gate.Gate {
	return gate.Funcs{OnRequest: t.request, OnAnswer: t.answer, OnFrame: t.frame}
}

// request holds a write up.
func (t *Tap) request(ctx context.Context, r *gate.Request) gate.Verdict {
	if !r.Mutates() || !t.holds(r) {
		return gate.Verdict{}
	}
	t.mu.Lock()
	program := t.program
	t.mu.Unlock()
	if program != nil {
		held, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(program, cancel)()
		ctx = held
	}
	text := describe(r)
	if !t.wait(ctx, waiting{Stage: atWrite, Text: text}) {
		return gate.Verdict{Action: gate.Drop}
	}
	if !t.take(conflict, text) {
		return gate.Verdict{}
	}
	resource := schema.GroupResource{Group: r.Group, Resource: r.Resource}
	return gate.FailWith(apierrors.NewConflict(resource, r.Name, errors.New("the fault was asked for")))
}

func (t *Tap) answer(_ context.Context, r *gate.Request, a gate.Answer) gate.Verdict {
	if !r.Mutates() || !t.holds(r) || a.Code >= http.StatusMultipleChoices {
		return gate.Verdict{}
	}
	text := describe(r)
	switch {
	case t.take(lostAnswer, text):
		return gate.Verdict{Action: gate.Drop}
	case t.take(crash, text):
		t.o.Crash()
		return gate.Verdict{Action: gate.Drop}
	case t.take(cutWatch, text):
		t.mu.Lock()
		defer t.mu.Unlock()
		t.cut = true
	}
	return gate.Verdict{}
}

// frame holds an event up. It lets the objects pass that existed when the watch began, because a client that lists them
// gets them at once, too.
func (t *Tap) frame(ctx context.Context, r *gate.Request, f gate.Frame) gate.Verdict {
	if f.Initial || f.Name == "" || !t.holds(r) { // bookmarks have no name
		return gate.Verdict{}
	}
	object := trace.Subject{Resource: r.Resource, Namespace: f.Namespace, Name: f.Name}
	form := ""
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		form = "metadata"
	}
	t.wait(ctx, waiting{
		Stage: atEvent, Text: fmt.Sprintf("%s %s, version %s, to %s", f.Type, object, f.ResourceVersion, program(r)),
		Resource: cacheName(schema.GroupResource{Group: r.Group, Resource: r.Resource}.String(), form),
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.cut {
		return gate.Verdict{}
	}
	t.cut = false
	return gate.Verdict{Action: gate.Close}
}

// cacheName returns the name of a resource's cache whose objects have a form, as the drawing has it.
func cacheName(resource, form string) string {
	if form == "" {
		return resource
	}
	return resource + " (" + form + ")"
}

// take takes the fault of the next write, if it is f.
func (t *Tap) take(f fault, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != f {
		return false
	}
	t.fault = ""
	t.told = append(t.told, string(f)+": "+text)
	t.told = t.told[max(0, len(t.told)-mostTold):]
	return true
}

func describe(r *gate.Request) string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	object := trace.Subject{Resource: resource, Namespace: r.Namespace, Name: r.Name}.String()
	if r.Name == "" { // of a create, the name is in the body
		object = strings.TrimSuffix(resource+" in "+r.Namespace, " in ")
	}
	return fmt.Sprintf("%s %s by %s", r.Verb, object, program(r))
}

// program returns the name of the program that a request is from, with the part of it that client-go's user agent
// names: "flyball/controllers" for "flyball/v1.0 (linux/amd64) kubernetes/1a2b3c/controllers".
func program(r *gate.Request) string {
	name, more, _ := strings.Cut(cmp.Or(r.UserAgent, r.User), "/")
	if parts := strings.SplitN(more, "/", 4); len(parts) == 4 {
		name += "/" + parts[3]
	}
	return name
}
