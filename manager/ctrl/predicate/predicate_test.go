package predicate_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl/predicate"
	"github.com/flyball-dev/flyball/reconcile/event"
	own "github.com/flyball-dev/flyball/reconcile/predicate"
)

func pod(change func(*metav1.ObjectMeta)) client.Object {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1, ResourceVersion: "1"}}
	change(&p.ObjectMeta)
	return p
}

// Each predicate passes the update that changes its part of the metadata, no other, and all events of other types.
func TestChanged(t *testing.T) {
	some := map[string]string{"a": ""}
	changes := []struct {
		change func(*metav1.ObjectMeta)
		passes predicate.Predicate
	}{
		{func(m *metav1.ObjectMeta) { m.Generation = 2 }, predicate.GenerationChangedPredicate{}},
		{func(m *metav1.ObjectMeta) { m.ResourceVersion = "2" }, predicate.ResourceVersionChangedPredicate{}},
		{func(m *metav1.ObjectMeta) { m.Labels = some }, predicate.LabelChangedPredicate{}},
		{func(m *metav1.ObjectMeta) { m.Annotations = some }, predicate.AnnotationChangedPredicate{}},
	}
	old := pod(func(*metav1.ObjectMeta) {})
	for i, change := range changes {
		for j, other := range changes {
			p, update := other.passes, event.UpdateEvent{ObjectOld: old, ObjectNew: pod(change.change)}
			if got := p.Update(update); got != (i == j) {
				t.Errorf("%T passes the change for %T: %v", p, change.passes, got)
			}
		}
		p := change.passes
		var none *corev1.Pod
		for _, update := range []event.UpdateEvent{
			{}, {ObjectOld: old}, {ObjectNew: old}, {ObjectOld: old, ObjectNew: none},
		} {
			if p.Update(update) {
				t.Errorf("%T passes an update without an object: %v", p, update)
			}
		}
		if !p.Create(event.CreateEvent{}) || !p.Delete(event.DeleteEvent{}) || !p.Generic(event.GenericEvent{}) {
			t.Errorf("%T drops an event that is no update", p)
		}
	}
}

// creates overrides one method of the predicate that it embeds.
type creates struct{ predicate.Funcs }

func (creates) Update(event.UpdateEvent) bool { return false }

func TestOverride(t *testing.T) {
	f := own.Of[client.Object](creates{})
	if !f(own.Event[client.Object]{Type: own.Add}) || f(own.Event[client.Object]{Type: own.Update}) {
		t.Error("the method that the embedding type overrides is not called")
	}
}

// And, Or and Not combine both kinds of predicates, for each type of event.
func TestCombined(t *testing.T) {
	var yes predicate.Predicate = own.Matching(func(client.Object) bool { return true })
	var no predicate.Predicate = predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	for name, c := range map[string]struct {
		predicate predicate.Predicate
		passes    bool
	}{
		"and": {predicate.And(yes, no), false}, "and both": {predicate.And(yes, yes), true},
		"or": {predicate.Or(yes, no), true}, "or neither": {predicate.Or(no, no), false},
		"not": {predicate.Not(yes), false}, "not no": {predicate.Not(no), true},
		"and none": {predicate.And[client.Object](), true}, "or none": {predicate.Or[client.Object](), false},
	} {
		p := c.predicate
		for event, got := range map[string]bool{
			"create": p.Create(event.CreateEvent{}), "update": p.Update(event.UpdateEvent{}),
			"delete": p.Delete(event.DeleteEvent{}), "generic": p.Generic(event.GenericEvent{}),
		} {
			if got != c.passes {
				t.Errorf("%s passes %s: %v", name, event, got)
			}
		}
	}
}

func ExampleNewPredicateFuncs() {
	web := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()["app"] == "web" })
	before := pod(func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"app": "web"} })
	after := pod(func(*metav1.ObjectMeta) {})
	fmt.Println(web.Create(event.CreateEvent{Object: before}))
	fmt.Println(web.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
	// Output:
	// true
	// false
}

func TestLabelSelector(t *testing.T) {
	p, err := predicate.LabelSelectorPredicate(metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	if err != nil || p.Create(event.CreateEvent{Object: pod(func(*metav1.ObjectMeta) {})}) {
		t.Errorf("the selector passes an object without the label (%v)", err)
	}
	wrong := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "near"}}}
	if _, err := predicate.LabelSelectorPredicate(wrong); err == nil {
		t.Error("no error for an operator that does not exist")
	}
}
