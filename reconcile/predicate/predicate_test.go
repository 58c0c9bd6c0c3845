package predicate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/reconcile/predicate"
)

type event = predicate.Event[*corev1.Pod]

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Generation: 1, ResourceVersion: "1", Labels: map[string]string{"a": "b"}},
	}
	change(p)
	return p
}

func TestPredicates(t *testing.T) {
	same := pod(func(*corev1.Pod) {})
	generation := pod(func(p *corev1.Pod) { p.Generation = 2 })
	labels := pod(func(p *corev1.Pod) { p.Labels = nil })
	annotations := pod(func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} })
	version := pod(func(p *corev1.Pod) { p.ResourceVersion = "2" })
	deleting := pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })
	changes := []struct {
		name string
		e    event
	}{
		{"add", event{Type: predicate.Add, Object: same}},
		{"delete", event{Type: predicate.Delete, Object: same}},
		{"resync", event{Type: predicate.Update, Old: same, Object: same}},
		{"generation", event{Type: predicate.Update, Old: same, Object: generation}},
		{"labels", event{Type: predicate.Update, Old: same, Object: labels}},
		{"annotations", event{Type: predicate.Update, Old: same, Object: annotations}},
		{"version", event{Type: predicate.Update, Old: same, Object: version}},
		{"deleting", event{Type: predicate.Update, Old: same, Object: deleting}},
	}
	labelled := predicate.Matching(func(p *corev1.Pod) bool { return p.Labels["a"] == "b" })
	for _, c := range []struct {
		name   string
		p      predicate.Predicate[*corev1.Pod]
		passes string
	}{
		{"GenerationChanged", predicate.GenerationChanged[*corev1.Pod](), "add delete generation"},
		{"LabelsChanged", predicate.LabelsChanged[*corev1.Pod](), "add delete labels"},
		{"AnnotationsChanged", predicate.AnnotationsChanged[*corev1.Pod](), "add delete annotations"},
		{"ResourceVersionChanged", predicate.ResourceVersionChanged[*corev1.Pod](), "add delete version"},
		{"DeletionStarted", predicate.DeletionStarted[*corev1.Pod](), "deleting"},
		{"Matching", labelled, "add delete resync generation labels annotations version deleting"},
		{
			"Or", predicate.Or(predicate.GenerationChanged[*corev1.Pod](), predicate.LabelsChanged[*corev1.Pod]()),
			"add delete generation labels",
		},
		{
			"And", predicate.And(predicate.GenerationChanged[*corev1.Pod](), predicate.LabelsChanged[*corev1.Pod]()),
			"add delete",
		},
		{
			"Not", predicate.Not(predicate.GenerationChanged[*corev1.Pod]()),
			"resync labels annotations version deleting",
		},
		{
			"And of none", predicate.And[*corev1.Pod](),
			"add delete resync generation labels annotations version deleting",
		},
		{"Or of none", predicate.Or[*corev1.Pod](), ""},
	} {
		passes := ""
		for _, change := range changes {
			if c.p(change.e) {
				passes += " " + change.name
			}
		}
		if passes != "" {
			passes = passes[1:]
		}
		if passes != c.passes {
			t.Errorf("%s lets pass %q, want %q", c.name, passes, c.passes)
		}
	}
}

// ConfigMaps have no generation. If their updates did not pass, a controller would miss all of them.
func TestGenerationChangedPassesWhatHasNone(t *testing.T) {
	e := predicate.Event[*corev1.ConfigMap]{
		Type: predicate.Update, Old: &corev1.ConfigMap{},
		Object: &corev1.ConfigMap{},
	}
	if !predicate.GenerationChanged[*corev1.ConfigMap]()(e) {
		t.Error("the update of an object without generations is dropped")
	}
}

// The update with which an object stops to match passes: its controller has to release it.
func TestMatchingLooksAtBothStates(t *testing.T) {
	matches := predicate.Matching(func(p *corev1.Pod) bool { return p.Labels["a"] == "b" })
	if !matches(event{Type: predicate.Update, Old: pod(func(*corev1.Pod) {}), Object: &corev1.Pod{}}) {
		t.Error("an object that stopped to match is not heard of")
	}
	if matches(event{Type: predicate.Add, Object: &corev1.Pod{}}) {
		t.Error("an object that does not match is heard of")
	}
}
