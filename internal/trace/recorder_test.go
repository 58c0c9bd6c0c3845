package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/heapsize"
)

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version}}
}

func subject(name string) Subject { return Subject{Resource: "pods", Namespace: "ns", Name: name} }

// versions returns those of the steps of a pod.
func versions(r *Recorder, name string) (all []string) {
	steps, _ := r.Steps(subject(name))
	for _, s := range steps {
		all = append(all, s.Version)
	}
	return all
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestStepsGiveWay(t *testing.T) {
	r := New(Options{Subjects: 2, Steps: 3, States: 2})
	for n := range 5 {
		r.Changed("pods", "", "Update", false, pod("a", fmt.Sprint(n)), pod("a", fmt.Sprint(n+1)), time.Now())
	}
	steps, before := r.Steps(subject("a"))
	want(t, "steps", versions(r, "a"), []string{"3", "4", "5"})
	want(t, "forgotten steps", before, 2)
	want(t, "states", []bool{steps[0].New != nil, steps[1].New != nil, steps[2].New != nil}, []bool{false, true, true})

	stop := r.Watch(subject("a"))
	r.Changed("pods", "", "Add", true, nil, pod("b", "6"), time.Now())
	r.Changed("pods", "", "Add", true, nil, pod("c", "7"), time.Now())
	want(t, "the watched subject", len(versions(r, "a")), 3)
	want(t, "the one in whose place c came", versions(r, "b"), []string{})
	stop()
	r.Changed("pods", "", "Add", true, nil, pod("d", "8"), time.Now())
	want(t, "the subject that is no longer watched", versions(r, "a"), []string{})
	want(t, "stats", r.Stats(), Stats{Steps: 8, Evicted: 2, Subjects: 2})
	want(t, "newest first", r.Subjects(9, func(Subject) bool { return true }), []Subject{subject("d"), subject("c")})
}

// TestStatesAreBoundedInBytes: large objects leave fewer states than small ones.
func TestStatesAreBoundedInBytes(t *testing.T) {
	const size, limit = 100_000, 4 << 20
	text := func(n int) string { return fmt.Sprint(n) + strings.Repeat("x", size) }
	for name, state := range map[string]func(n int) metav1.Object{
		"typed": func(n int) metav1.Object {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: fmt.Sprint(n)},
				Data:       map[string]string{"k": text(n)},
			}
		},
		"a tree": func(n int) metav1.Object {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": []any{map[string]any{"k": text(n)}}}}
			u.SetNamespace("ns")
			u.SetName("a")
			u.SetResourceVersion(fmt.Sprint(n))
			return u
		},
		"a type of an operator": func(n int) metav1.Object {
			type spec struct{ Parts []*map[string]string }
			return &struct {
				metav1.TypeMeta
				metav1.ObjectMeta
				Spec spec
			}{
				metav1.TypeMeta{Kind: "Thing"},
				metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: fmt.Sprint(n)},
				spec{[]*map[string]string{{"k": text(n)}}},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Options{StateBytes: limit})
			before, old := heapsize.Now(), state(0)
			for n := range 420 {
				changed := state(n + 1)
				r.Changed("things", "", "Update", false, old, changed, time.Now())
				old = changed
			}
			if grown := heapsize.Now() - before; grown > 2*limit {
				t.Errorf("the states hold %d MB, want at most %d", grown>>20, 2*limit>>20)
			}
			steps, _ := r.Steps(Subject{Resource: "things", Namespace: "ns", Name: "a"})
			with := 0
			for _, s := range steps {
				if s.New != nil {
					with++
				}
			}
			if last := steps[len(steps)-1]; with != limit/(2*size) || last.New == nil {
				t.Errorf("%d steps have states, want %d, the last one among them", with, limit/(2*size))
			}
		})
	}
}

// TestErrorsAreShort: a step has the beginning of an error's text, and not the error.
func TestErrorsAreShort(t *testing.T) {
	r := New(Options{})
	r.Received(subject("a"), "ADDED", "1", "", errors.New(strings.Repeat("ü", longestError)))
	steps, _ := r.Steps(subject("a"))
	want(t, "error", steps[0].Err.Error(), strings.Repeat("ü", longestError/2)+"…")
}

// A subject that nobody has steps of can be watched, and all may be.
func TestWatchedSubjectsStay(t *testing.T) {
	r := New(Options{Subjects: 1})
	r.Watch(subject("a"))
	r.Changed("pods", "", "Add", true, nil, pod("b", "1"), time.Now())
	r.Changed("pods", "", "Add", true, nil, pod("a", "2"), time.Now())
	want(t, "a", versions(r, "a"), []string{"2"})
	want(t, "b", versions(r, "b"), []string{"1"})
}

// The end of a reconcile is recorded even if it wrote so much that its begin is forgotten.
func TestLongReconcile(t *testing.T) {
	r := New(Options{Steps: 2})
	key := Subject{Controller: "c", Namespace: "ns", Name: "a"}
	began := time.Now()
	p := r.Began(key, 7, 0, 0, nil, began)
	run := &Run{r, key, 7}
	for range 3 {
		run.Waited("pods", time.Second, nil)
	}
	r.Ended(p, key, "done", nil, 0, began)
	steps, _ := r.Steps(key)
	last := steps[len(steps)-1]
	want(t, "the last step", []any{last.Kind == Ran, last.Run, last.Outcome}, "[true 7 done]")
}

// Nothing is added to a step in whose place there is another, be it one of another subject.
func TestForgottenPlaces(t *testing.T) {
	r := New(Options{Subjects: 1, Steps: 1})
	cause := Cause{Source: "pods", Event: "Update", Object: "ns/a", ResourceVersion: "2"}
	p := r.Handled("c", &cause)
	q := r.Handled("d", &cause)
	key := Subject{Controller: "c", Namespace: "ns", Name: "a"}
	r.Queued(p, key, 0)
	began := r.Began(key, 7, 0, 0, nil, time.Now())
	r.Queued(q, key, 0)
	other := Subject{Controller: "c", Name: "b"}
	r.Ended(r.Began(other, 8, 0, 0, nil, time.Now()), other, "done", nil, 0, time.Now())
	steps, _ := r.Steps(other)
	want(t, "b", []any{len(steps), len(steps[0].Keys), steps[0].Run}, "[1 0 8]")
	r.Ended(began, key, "retry", nil, 0, time.Now())
	steps, _ = r.Steps(key)
	want(t, "a", []any{len(steps), steps[0].Run, steps[0].Outcome}, "[1 7 retry]")
}

func TestWriteWithoutReconcile(t *testing.T) {
	r := New(Options{})
	w := Write{Object: subject("a"), Verb: "update"}
	BeginWrite(With(context.Background(), r), &w)
	r.Changed("pods", "", "Update", false, pod("a", "1"), pod("a", "2"), time.Now())
	w.Err = errors.New("gone")
	w.End()
	steps, _ := r.Steps(subject("a"))
	want(t, "steps", []any{steps[0].Number, steps[1].Number, steps[1].Outcome, steps[1].Err}, "[2 1 no answer gone]")
	BeginWrite(context.Background(), &w) // Nobody wants to know.
	w.End()
}

func TestListeners(t *testing.T) {
	r := New(Options{})
	var first, second []Kind
	stop := r.Listen(func(_ Subject, s *Step) { first = append(first, s.Kind) })
	r.Changed("pods", "", "Add", true, nil, pod("a", "1"), time.Now())
	defer r.Listen(func(_ Subject, s *Step) { second = append(second, s.Kind) })()
	key := Subject{Controller: "c", Name: "a"}
	r.Ended(r.Began(key, 1, 0, 0, nil, time.Now()), key, "done", nil, 0, time.Now())
	stop()
	r.Handled("c", &Cause{Source: "pods", Object: "ns/a"})
	want(t, "first", first, []Kind{Changed, Ran})
	want(t, "second", second, []Kind{Ran, Handled})
}

// TestRunningWhileListenersHear: a reconcile counts as running until the listeners have its end.
func TestRunningWhileListenersHear(t *testing.T) {
	r := New(Options{})
	key := Subject{Controller: "c", Name: "a"}
	var running []int
	defer r.Listen(func(Subject, *Step) { running = append(running, r.Stats().Running) })()
	r.Ended(r.Began(key, 1, 0, 0, nil, time.Now()), key, "done", nil, 0, time.Now())
	want(t, "running", append(running, r.Stats().Running), []int{1, 0})
}

// Once the rings are full, an event costs no allocation.
func TestNothingIsAllocatedOnceFull(t *testing.T) {
	r := New(Options{Subjects: 8, Steps: 10})
	old, changed := pod("a", "1"), pod("a", "2")
	cause := Cause{Source: "pods", Event: "Update", Object: "ns/a", ResourceVersion: "2"}
	causes := []Cause{cause}
	key := Subject{Controller: "c", Namespace: "ns", Name: "a"}
	event := func() {
		r.Changed("pods", "", "Update", false, old, changed, time.Now())
		r.Received(subject("a"), "MODIFIED", "2", "", nil)
		r.Queued(r.Handled("c", &cause), key, 0)
		r.Ended(r.Began(key, 1, 0, 0, causes, time.Time{}), key, "done", nil, 0, time.Time{})
	}
	for range 20 {
		event()
	}
	if n := testing.AllocsPerRun(100, event); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEvent(b *testing.B) {
	r := New(Options{})
	names := make([]string, 1000)
	for n := range names {
		names[n] = fmt.Sprint("pod-", n)
	}
	var n int
	changed := pod("a", "2")
	cause := Cause{Source: "pods", Event: "Update", ResourceVersion: "2"}
	b.ReportAllocs()
	for b.Loop() {
		n++
		name := names[n%len(names)]
		changed.Name, cause.Object = name, name
		key := Subject{Controller: "c", Name: name}
		r.Changed("pods", "", "Update", false, changed, changed, time.Now())
		r.Received(Subject{Resource: "pods", Name: name}, "MODIFIED", "2", "", nil)
		r.Queued(r.Handled("c", &cause), key, 0)
		r.Ended(r.Began(key, 1, 0, 0, nil, time.Time{}), key, "done", nil, 0, time.Time{})
	}
}
