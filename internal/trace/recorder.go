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
}

// Recorder keeps the last steps of objects and keys in memory. It allocates nothing once it is full.
//
// A step is first written to a spool, one after the other, which takes a worker little time. Many at once are then
// filed under their subjects, by another goroutine or by whoever asks for steps.
//
// Concurrency: all methods may be called from any goroutine.
type Recorder struct {
	o Options
	// hold is nil or the function that holds steps up.
	hold atomic.Pointer[func(Kind, Subject, string)]
	// listeners is nil or the functions to call with each step.
	listeners atomic.Pointer[[]*func(Subject, *Step)]

	// mu guards number, fresh, full and spare. Who holds it and filing has taken filing first.
	mu sync.Mutex
	// number is that of the last step.
	number uint64
	// fresh has the newest steps. full has those before, if they wait to be filed, or is nil. spare is empty; it is nil
	// if full is not, and while steps are filed.
	fresh, full, spare *spool

	// filing guards what follows.
	filing sync.Mutex
	tracks map[Subject]*track
	// last is the track that was asked for last, which most steps have in common with the step before; it may be nil.
	last *track
	// root is in the ring of all tracks: root.newer is the one without steps for longest.
	root track
	// evicted counts the tracks that have given way.
	evicted uint64
	// handled counts the calls of handlers, and written the writes of reconciles.
	handled, written map[Flow]uint64
	// states are those before and after the last changes, a ring of Options.States.
	states []states
	state  int
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
}

// New returns a Recorder without steps.
func New(o Options) *Recorder {
	o.Subjects, o.Steps, o.States = cmp.Or(o.Subjects, 2000), cmp.Or(o.Steps, 50), cmp.Or(o.States, 4096)
	r := &Recorder{
		o: o, fresh: newSpool(), spare: newSpool(), tracks: map[Subject]*track{}, states: make([]states, o.States),
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

// slotLocked returns the place of a new step of s, where an old one may be.
func (r *Recorder) slotLocked(s Subject) *Step {
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
	return &t.steps[at]
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
	t.newer.older, t.older.newer = t.older, t.newer
	t.newer, t.older = &r.root, r.root.older
	t.older.newer, r.root.older = t, t
}

// findLocked returns the newest step of s for which match holds; nil if there is none.
func (r *Recorder) findLocked(s Subject, match func(*Step) bool) *Step {
	t := r.trackLocked(s)
	if t == nil {
		return nil
	}
	for n := range uint64(len(t.steps)) {
		step := &t.steps[(t.total-1-n)%uint64(r.o.Steps)]
		if match(step) {
			return step
		}
	}
	return nil
}

// keepStatesLocked moves the states of a change out of its step, in the place of the oldest ones.
func (r *Recorder) keepStatesLocked(step *Step) {
	r.states[r.state] = states{step.Number, step.Old, step.New}
	step.Old, step.New, step.states = nil, nil, r.state
	r.state = (r.state + 1) % len(r.states)
}

// Steps returns copies of the steps of s, oldest first, and how many there were before them.
func (r *Recorder) Steps(s Subject) (steps []Step, before uint64) {
	r.lockFiled()
	defer r.filing.Unlock()
	t := r.tracks[s]
	if t == nil {
		return nil, 0
	}
	before = t.total - uint64(len(t.steps))
	for n := before; n < t.total; n++ {
		step := copied(&t.steps[n%uint64(r.o.Steps)])
		if of := &r.states[step.states]; of.number == step.Number {
			step.Old, step.New = of.old, of.new
		}
		steps = append(steps, step)
	}
	return steps, before
}

// copied returns a copy of a step that shares no slice with it.
func copied(s *Step) Step {
	c := *s
	c.Keys, c.Causes = slices.Clone(s.Keys), slices.Clone(s.Causes)
	return c
}

// Subjects returns at most limit subjects for which match holds, those with the newest steps first.
func (r *Recorder) Subjects(limit int, match func(Subject) bool) (found []Subject) {
	r.lockFiled()
	defer r.filing.Unlock()
	for t := r.root.older; t != &r.root && len(found) < limit; t = t.older {
		if match(t.subject) {
			found = append(found, t.subject)
		}
	}
	return found
}

// Watch keeps the steps of s until stop is called, even if s has none for long.
func (r *Recorder) Watch(s Subject) (stop func()) {
	r.lockFiled()
	defer r.filing.Unlock()
	t := r.tracks[s]
	if t == nil {
		t = r.newLocked(s)
		r.touchLocked(t)
	}
	t.watched++
	return sync.OnceFunc(func() {
		r.filing.Lock()
		defer r.filing.Unlock()
		t.watched--
	})
}

// Stats counts what was recorded.
type Stats struct {
	// Steps is the number of all steps, Subjects how many objects and keys have steps now, and Evicted how many others
	// had some that are forgotten.
	Steps, Evicted uint64
	Subjects       int
}

// Stats returns a snapshot of the counts.
func (r *Recorder) Stats() Stats {
	r.lockFiled()
	defer r.filing.Unlock()
	return Stats{Steps: r.Number(), Evicted: r.evicted, Subjects: len(r.tracks)}
}

// Number returns that of the newest step.
func (r *Recorder) Number() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.number
}

// Hold calls f before each change of a cache is handed to handlers, and before each reconcile; text says which change
// it is. The pipeline goes on when f returns. nil ends that.
func (r *Recorder) Hold(f func(kind Kind, s Subject, text string)) {
	if f == nil {
		r.hold.Store(nil)
		return
	}
	r.hold.Store(&f)
}

func (r *Recorder) holdUp(kind Kind, s Subject, text string) {
	if hold := r.hold.Load(); hold != nil {
		(*hold)(kind, s, text)
	}
}

// Flow is a way between the objects of a resource and a controller.
type Flow struct{ Resource, Controller string }

// Flows returns how often handlers of controllers have been called with objects, and how often reconciles have written
// some.
func (r *Recorder) Flows() (handled, written map[Flow]uint64) {
	r.lockFiled()
	defer r.filing.Unlock()
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
