package trace

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Options bound a Recorder. The zero value means the defaults.
type Options struct {
	// Subjects is how many objects and keys have steps; zero means 2,000. The one whose last step is the oldest gives
	// way to a new one.
	Subjects int
	// Steps is how many steps each of them has at most; zero means 50.
	Steps int
	// States is how many changes have their old and new state, from which differences are made; zero means 4,096.
	States int
	// StateBytes bounds the size of these states together; zero means 32 MiB. The last change has them in any case.
	StateBytes int
}

// Recorder keeps the last steps of objects and keys in memory. It allocates nothing once it is full.
//
// Concurrency: all methods may be called from any goroutine.
type Recorder struct {
	o Options
	// hold is nil or the function that holds steps up.
	hold atomic.Pointer[func(kind Kind, s Subject, event, form string)]
	// listeners is nil or the functions to call with each step.
	listeners atomic.Pointer[[]*func(Subject, *Step)]
	// running counts the reconciles that have begun, and whose end the listeners have not been called with yet.
	running atomic.Int64

	mu     sync.Mutex
	tracks map[Subject]*track
	// last is the track that was asked for last, which most steps have in common with the step before; it may be nil.
	last *track
	// root is in the ring of all tracks: root.newer is the one without steps for longest.
	root track
	// number is that of the last step.
	number uint64
	// evicted counts the tracks that have given way.
	evicted uint64
	// handled counts the calls of handlers, and written the writes of reconciles.
	handled, written map[Flow]uint64
	// states are those before and after the last changes, a ring of Options.States. state is the place of the next one,
	// oldest that of the oldest, and stateBytes the size of all.
	states        []states
	state, oldest int
	stateBytes    int
}

// track has the steps of one subject.
type track struct {
	subject Subject
	// steps is a ring of Options.Steps; total counts all that there ever were.
	steps []Step
	total uint64
	// watched counts those who want the track to stay.
	watched      int
	newer, older *track
}

// states are those before and after a change, the step of that number.
type states struct {
	number   uint64
	old, new metav1.Object
	size     int
}

// New returns a Recorder without steps.
func New(o Options) *Recorder {
	o.Subjects, o.Steps, o.States = cmp.Or(o.Subjects, 2000), cmp.Or(o.Steps, 50), cmp.Or(o.States, 4096)
	o.StateBytes = cmp.Or(o.StateBytes, 32<<20)
	r := &Recorder{
		o: o, tracks: map[Subject]*track{}, states: make([]states, o.States),
		handled: map[Flow]uint64{}, written: map[Flow]uint64{},
	}
	r.root.newer, r.root.older = &r.root, &r.root
	return r
}

type contextKey struct{}

// With returns a context whose informers, controllers and clients report to r.
func With(ctx context.Context, r *Recorder) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// From returns the Recorder of a context; nil if it has none.
func From(ctx context.Context) *Recorder {
	r, _ := ctx.Value(contextKey{}).(*Recorder)
	return r
}

// Place is where a step is, so that more can be added to it.
type Place struct {
	track  *track
	at     int    // the place in its track
	number uint64 // of the step; another step may have taken its place
	run    uint64 // of Ran
}

// nextLocked returns the number of a new step.
func (r *Recorder) nextLocked() uint64 {
	r.number++
	return r.number
}

// addLocked returns a new step of s with that number, and its place. Its slices are empty but may have room.
func (r *Recorder) addLocked(s Subject, number uint64) (*Step, Place) {
	t := r.trackLocked(s)
	if t == nil {
		t = r.newLocked(s)
	}
	r.touchLocked(t)
	at := int(t.total % uint64(r.o.Steps))
	if at == len(t.steps) {
		t.steps = append(t.steps, Step{})
	}
	t.total++
	step := &t.steps[at]
	keys, causes := step.Keys[:0], step.Causes
	clear(causes)
	*step = Step{Number: number, Keys: keys, Causes: causes[:0]}
	return step, Place{track: t, at: at, number: number}
}

// atLocked returns the step in a place; nil if it is forgotten.
func (r *Recorder) atLocked(p Place) *Step {
	if p.at >= len(p.track.steps) || p.track.steps[p.at].Number != p.number {
		return nil
	}
	return &p.track.steps[p.at]
}

// trackLocked returns the track of s; nil if it has none.
func (r *Recorder) trackLocked(s Subject) *track {
	if r.last == nil || r.last.subject != s {
		r.last = r.tracks[s]
	}
	return r.last
}

// newLocked returns a track without steps, if need be that of another subject.
func (r *Recorder) newLocked(s Subject) *track {
	t := &track{}
	if len(r.tracks) >= r.o.Subjects {
		if old := r.oldestLocked(); old != nil {
			t = old
			delete(r.tracks, t.subject)
			t.newer.older, t.older.newer = t.older, t.newer
			clear(t.steps[:cap(t.steps)])
			*t = track{steps: t.steps[:0]}
			r.evicted++
		}
	}
	t.subject = s
	t.newer, t.older = t, t
	r.tracks[s] = t
	r.last = t
	return t
}

// oldestLocked returns the track that gives way; nil if all are watched.
func (r *Recorder) oldestLocked() *track {
	for t := r.root.newer; t != &r.root; t = t.newer {
		if t.watched == 0 {
			return t
		}
	}
	return nil
}

// touchLocked makes t the newest.
func (r *Recorder) touchLocked(t *track) {
	if r.root.older == t {
		return
	}
	t.newer.older, t.older.newer = t.older, t.newer
	t.newer, t.older = &r.root, r.root.older
	t.older.newer, r.root.older = t, t
}

// keepStatesLocked keeps the states of a change, in the place of the oldest ones.
func (r *Recorder) keepStatesLocked(step *Step, of states) {
	if r.states[r.state].number != 0 {
		r.dropOldestLocked()
	}
	of.number, step.states = step.Number, r.state
	r.states[r.state] = of
	r.stateBytes += of.size
	for r.stateBytes > r.o.StateBytes && r.oldest != r.state {
		r.dropOldestLocked()
	}
	r.state = (r.state + 1) % len(r.states)
}

func (r *Recorder) dropOldestLocked() {
	r.stateBytes -= r.states[r.oldest].size
	r.states[r.oldest] = states{}
	r.oldest = (r.oldest + 1) % len(r.states)
}

// Steps returns copies of the steps of s, oldest first, and how many there were before them.
func (r *Recorder) Steps(s Subject) (steps []Step, before uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tracks[s]
	if t == nil {
		return nil, 0
	}
	before = t.total - uint64(len(t.steps))
	for n := before; n < t.total; n++ {
		steps = append(steps, r.copyLocked(&t.steps[n%uint64(r.o.Steps)]))
	}
	return steps, before
}

// copyLocked returns a copy of a step, with its states, that shares no slice with it.
func (r *Recorder) copyLocked(s *Step) Step {
	c := *s
	c.Keys, c.Causes = slices.Clone(s.Keys), slices.Clone(s.Causes)
	if of := &r.states[s.states]; of.number == s.Number {
		c.Old, c.New = of.old, of.new
	}
	return c
}

// Subjects returns at most limit subjects for which match holds, those with the newest steps first.
func (r *Recorder) Subjects(limit int, match func(Subject) bool) (found []Subject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t := r.root.older; t != &r.root && len(found) < limit; t = t.older {
		if match(t.subject) {
			found = append(found, t.subject)
		}
	}
	return found
}

// Watch keeps the steps of s until stop is called, even if s has none for long.
func (r *Recorder) Watch(s Subject) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tracks[s]
	if t == nil {
		t = r.newLocked(s)
		r.touchLocked(t)
	}
	t.watched++
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		t.watched--
	})
}

// Stats counts what was recorded.
type Stats struct {
	// Steps is the number of all steps, Subjects how many objects and keys have steps now, and Evicted how many others
	// had some that are forgotten. Running is the number of reconciles that have begun and not ended. One whose end the
	// listeners have not seen counts, so that a listener that stops at zero has seen all.
	Steps, Evicted    uint64
	Subjects, Running int
}

// Stats returns a snapshot of the counts.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{Steps: r.number, Evicted: r.evicted, Subjects: len(r.tracks), Running: int(r.running.Load())}
}

// Hold calls f before each change of a cache is handed to handlers, and before each reconcile. event says which change
// it is, and form is that of the cache, see [FormOf]. The pipeline goes on when f returns. nil ends that.
func (r *Recorder) Hold(f func(kind Kind, s Subject, event, form string)) {
	if f == nil {
		r.hold.Store(nil)
		return
	}
	r.hold.Store(&f)
}

func (r *Recorder) holdUp(kind Kind, s Subject, event, form string) {
	if hold := r.hold.Load(); hold != nil {
		(*hold)(kind, s, event, form)
	}
}

// Flow is a way between the objects of a resource and a controller.
type Flow struct{ Resource, Controller string }

// Flows returns how often handlers of controllers have been called with objects, and how often reconciles have written
// some.
func (r *Recorder) Flows() (handled, written map[Flow]uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.handled), maps.Clone(r.written)
}

// Listen calls f with each step from now on until stop is called: of Ran when the reconcile has ended, of all others
// when they have happened. f runs in the goroutine of the step, must return quickly and must not keep the step.
func (r *Recorder) Listen(f func(Subject, *Step)) (stop func()) {
	change := func(edit func([]*func(Subject, *Step)) []*func(Subject, *Step)) {
		for {
			old := r.listeners.Load()
			var list []*func(Subject, *Step)
			if old != nil {
				list = slices.Clone(*old)
			}
			list = edit(list)
			next := &list
			if len(list) == 0 {
				next = nil
			}
			if r.listeners.CompareAndSwap(old, next) {
				return
			}
		}
	}
	change(func(l []*func(Subject, *Step)) []*func(Subject, *Step) { return append(l, &f) })
	return sync.OnceFunc(func() {
		change(func(l []*func(Subject, *Step)) []*func(Subject, *Step) {
			return slices.DeleteFunc(l, func(g *func(Subject, *Step)) bool { return g == &f })
		})
	})
}

// endLocked unlocks, and calls the listeners with step.
func (r *Recorder) endLocked(s Subject, step *Step) {
	listeners := r.listeners.Load()
	if listeners == nil {
		r.mu.Unlock()
		return
	}
	c := r.copyLocked(step)
	r.mu.Unlock()
	for _, f := range *listeners {
		(*f)(s, &c)
	}
}
