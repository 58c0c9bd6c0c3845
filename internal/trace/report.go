package trace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Received records that a watch has brought an event about an object: "ADDED", "MODIFIED" or "DELETED". err is not nil
// if its object could not be decoded. form is that of the cache's objects, see [FormOf].
func (r *Recorder) Received(s Subject, event, version, form string, err error) {
	now := time.Now()
	r.mu.Lock()
	step, _ := r.addLocked(s, r.nextLocked())
	step.Kind, step.Time, step.Event, step.Version, step.Text = Received, now, event, version, form
	step.Err = textOf(err)
	r.endLocked(s, step)
}

// FormOf returns "metadata" or "unstructured" if the type of an object holds objects of every kind so, otherwise "".
func FormOf(object any) string {
	switch object.(type) {
	case *metav1.PartialObjectMetadata:
		return "metadata"
	case *unstructured.Unstructured:
		return "unstructured"
	}
	return ""
}

// OfForm tells the cache of a form apart from the other caches of its resource, in words that follow an object.
func OfForm(form string) string {
	if form == "" {
		return ""
	}
	return " in the cache of " + form + " objects"
}

// Changed records that a cache of the resource went from one state of an object to another at a time. changed is the
// new state, or of a delete the last.
func (r *Recorder) Changed(resource, form, event string, initial bool, old, changed metav1.Object, now time.Time) {
	s := Subject{Resource: resource, Namespace: changed.GetNamespace(), Name: changed.GetName()}
	version := changed.GetResourceVersion()
	r.holdUp(Changed, s, event, form)
	var of states // of an object that is new there is no difference
	if old != nil {
		of = states{old: old, new: changed, size: sizeOf(old) + sizeOf(changed)}
	}
	r.mu.Lock()
	step, _ := r.addLocked(s, r.nextLocked())
	step.Kind, step.Time, step.Event, step.Version, step.Initial = Changed, now, event, version, initial
	step.Text = form
	if old != nil {
		r.keepStatesLocked(step, of)
	}
	r.endLocked(s, step)
}

// SubjectOf returns an object of a resource. key is "namespace/name", or the name alone.
func SubjectOf(resource, key string) Subject {
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		namespace, name = "", key
	}
	return Subject{Resource: resource, Namespace: namespace, Name: name}
}

// subjectOf returns the object that a cause is about.
func subjectOf(c *Cause) Subject { return SubjectOf(c.Source, c.Object) }

// Handled records that a handler of a controller is about to be called. Queued then adds to the step.
func (r *Recorder) Handled(controller string, c *Cause) Place {
	s := subjectOf(c)
	r.mu.Lock()
	step, p := r.addLocked(s, r.nextLocked())
	step.Kind, step.Time, step.Event, step.Version = Handled, c.Time, c.Event, c.ResourceVersion
	step.Other.Controller = controller
	r.handled[Flow{s.Resource, controller}]++
	r.endLocked(s, step)
	return p
}

// Queued records that the handler has queued a key. p is what Handled returned.
func (r *Recorder) Queued(p Place, key Subject, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	step := r.atLocked(p)
	switch {
	case step == nil:
	case len(step.Keys) < mostKeys:
		step.Keys = append(step.Keys, Key{key.Namespace, key.Name, after})
	default:
		step.More++
	}
}

// KeyOf returns the subject of a controller's key.
func KeyOf[K comparable](controller string, key *K) Subject {
	s := Subject{Controller: controller}
	switch k := any(key).(type) {
	case *string:
		s.Name = *k
	default:
		s.Name = fmt.Sprint(*key)
	}
	return s
}

// Run is a reconcile.
type Run struct {
	Recorder *Recorder
	Key      Subject
	Number   uint64
}

// RunKey is the context key of a *Run.
type RunKey struct{}

// RunFrom returns the reconcile of a context; nil if it has none, or none that is recorded.
func RunFrom(ctx context.Context) *Run {
	run, _ := ctx.Value(RunKey{}).(*Run)
	return run
}

// Began records the begin of a reconcile.
func (r *Recorder) Began(key Subject, number uint64, attempt int, queued time.Duration, causes []Cause,
	now time.Time,
) Place {
	r.holdUp(Ran, key, "", "")
	r.mu.Lock()
	defer r.mu.Unlock()
	step, p := r.addLocked(key, r.nextLocked())
	step.Kind, step.Time, step.Run, step.Attempt, step.Queued = Ran, now, number, attempt, queued
	step.Causes = append(step.Causes, causes...)
	p.run = number
	r.running.Add(1)
	return p
}

// Ended records the end of a reconcile. p is what Began returned.
func (r *Recorder) Ended(p Place, key Subject, outcome string, err error, next time.Duration, began time.Time) {
	took, failure := time.Since(began), textOf(err)
	defer r.running.Add(-1)
	r.mu.Lock()
	step := r.atLocked(p)
	if step == nil { // It logged or wrote so much that its begin is gone.
		step, _ = r.addLocked(key, r.nextLocked())
		step.Kind, step.Time, step.Run = Ran, began, p.run
	}
	step.Outcome, step.Err, step.Next, step.Took = outcome, failure, next, took
	r.endLocked(key, step)
}

// add records a step of the reconcile.
func (n *Run) add(fill func(*Step)) {
	r := n.Recorder
	r.mu.Lock()
	step, _ := r.addLocked(n.Key, r.nextLocked())
	step.Run, step.Time = n.Number, time.Now()
	fill(step)
	r.endLocked(n.Key, step)
}

// Waited records that a read waited for the cache; err is not nil if in vain. It does nothing if n is nil.
func (n *Run) Waited(what string, took time.Duration, err error) {
	if n == nil {
		return
	}
	failure := textOf(err)
	n.add(func(s *Step) {
		s.Kind, s.Text, s.Took, s.Err, s.Time = Waited, what, took, failure, s.Time.Add(-took)
	})
}

// Write is a write that was answered, or whose answer was lost.
type Write struct {
	Object Subject
	// Verb is "create", "update", "patch", "apply", "delete" or "deletecollection".
	Verb, Subresource string
	// Version is the resource version in the answer, if it has one.
	Version string
	Began   time.Time
	// Status is that of the answer; empty if there is none, and then Err says why.
	Status string
	Err    error

	recorder *Recorder
	run      *Run
	number   uint64 // of its step, from before it was sent
}

// BeginWrite gives a write that is about to be sent with ctx its place among the steps. It returns false if no steps
// are recorded.
func BeginWrite(ctx context.Context, w *Write) (recorded bool) {
	w.Began, w.run, w.recorder = time.Now(), RunFrom(ctx), From(ctx)
	if w.run != nil {
		w.recorder = w.run.Recorder
	}
	if r := w.recorder; r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		w.number = r.nextLocked()
	}
	return w.recorder != nil
}

// End records a write that [BeginWrite] was called for.
func (w *Write) End() {
	run, r := w.run, w.recorder
	if r == nil {
		return
	}
	failure := textOf(w.Err)
	fill := func(s *Step) {
		s.Kind, s.Event, s.Text, s.Version = Wrote, w.Verb, w.Subresource, w.Version
		s.Time, s.Took, s.Outcome, s.Err = w.Began, time.Since(w.Began), cmp.Or(w.Status, "no answer"), failure
	}
	r.mu.Lock()
	if run != nil {
		step, _ := r.addLocked(run.Key, w.number)
		fill(step)
		step.Other, step.Run = w.Object, run.Number
	}
	step, _ := r.addLocked(w.Object, w.number)
	fill(step)
	if run != nil {
		step.Other, step.Run = run.Key, run.Number
		r.written[Flow{w.Object.Resource, run.Key.Controller}]++
	}
	r.endLocked(w.Object, step)
}

// Has reports whether the step, one of Ran, has a cause that is the object.
func (s *Step) Has(object Subject) bool {
	return slices.ContainsFunc(s.Causes, func(c Cause) bool { return subjectOf(&c) == object })
}
