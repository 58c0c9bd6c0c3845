package garbagecollector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector.go, attemptToDeleteItem
func TestPlan(t *testing.T) {
	a, b, c := ref("K ns/a a"), ref("K ns/b b"), ref("K ns/c c")
	refs := func(r ...metav1.OwnerReference) []metav1.OwnerReference { return r }
	child := []dependentView{{id: id("Pod ns/p p")}}
	dying := []dependentView{{id: id("Pod ns/p p"), deletingDependents: true}}
	tests := []struct {
		name       string
		dependents []dependentView
		finalizers []string
		owners     ownership
		want       step
	}{
		{"no owner", nil, nil, ownership{}, step{}},
		{"kept", nil, nil, ownership{solid: refs(a)}, step{}},
		{
			"kept, references to the others go", child, nil,
			ownership{solid: refs(a), dangling: refs(b), waiting: refs(c)},
			step{disown: []types.UID{"b", "c"}},
		},
		{
			"no owner left", child, nil,
			ownership{dangling: refs(a, b)},
			step{remove: ptr.To(metav1.DeletePropagationBackground)},
		},
		{
			"no owner left, wants its own orphaned", nil,
			[]string{"x", "orphan"},
			ownership{dangling: refs(a)},
			step{remove: ptr.To(metav1.DeletePropagationOrphan)},
		},
		{
			"no owner left, wants its own gone first", nil,
			[]string{"foregroundDeletion"},
			ownership{dangling: refs(a)},
			step{remove: ptr.To(metav1.DeletePropagationForeground)},
		},
		{
			"an owner waits", nil, nil,
			ownership{waiting: refs(a)},
			step{remove: ptr.To(metav1.DeletePropagationBackground)},
		},
		{
			"an owner waits, and there are dependents", child,
			[]string{"orphan"},
			ownership{waiting: refs(a), dangling: refs(b)},
			step{remove: ptr.To(metav1.DeletePropagationForeground)},
		},
		{
			"the same in what may be a cycle", dying, nil,
			ownership{waiting: refs(a)},
			step{remove: ptr.To(metav1.DeletePropagationForeground), unblock: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			latest := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Finalizers: tt.finalizers}}
			latest.OwnerReferences = append(append(append(latest.OwnerReferences, tt.owners.solid...),
				tt.owners.dangling...), tt.owners.waiting...)
			got := plan(view{dependents: tt.dependents}, latest, tt.owners)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(step{}, identity{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector.go, processDeletingDependentsItem
func TestPlanWaiting(t *testing.T) {
	p, q := id("Pod ns/p p"), id("Pod ns/q q")
	tests := []struct {
		name       string
		dependents []dependentView
		want       step
	}{
		{"alone", nil, step{removeFinalizer: true}},
		{"no dependent blocks", []dependentView{{id: p}}, step{removeFinalizer: true}},
		{"one blocks", []dependentView{{id: p, blocks: true}, {id: q}}, step{enqueue: []identity{p}}},
		{"one blocks and waits itself", []dependentView{{id: p, blocks: true, deletingDependents: true}}, step{}},
		{"two block", []dependentView{{id: p, blocks: true}, {id: q, blocks: true}}, step{enqueue: []identity{p, q}}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, planWaiting(view{dependents: tt.dependents}),
			cmp.AllowUnexported(step{}, identity{})); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestPatches(t *testing.T) {
	latest := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: "u", ResourceVersion: "7", Finalizers: []string{"a", "foregroundDeletion", "b"},
		OwnerReferences: []metav1.OwnerReference{ref("!K ns/a a"), ref("K ns/b b")},
	}}
	bare := &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "7", Finalizers: []string{"orphan"}},
	}
	must := func(body []byte, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for _, tt := range []struct{ name, got, want string }{
		{
			"strategic disown", must(strategicDisown("u", []types.UID{"a", "b"})),
			`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"a"},{"$patch":"delete","uid":"b"}],"uid":"u"}}`,
		},
		{
			"merge disown", must(mergeDisown(latest, []types.UID{"a"})),
			`{"metadata":{"resourceVersion":"7","uid":"u","ownerReferences":[{"apiVersion":"v1","kind":"K","name":"b","uid":"b"}]}}`,
		},
		{
			"merge disown of all", must(mergeDisown(latest, []types.UID{"a", "b"})),
			`{"metadata":{"resourceVersion":"7","uid":"u","ownerReferences":[]}}`,
		},
		{
			"strategic unblock", must(strategicUnblock(latest)),
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"a","uid":"a","blockOwnerDeletion":false}],"uid":"u"}}`,
		},
		{
			"merge unblock", must(mergeUnblock(latest)),
			`{"metadata":{"resourceVersion":"7","uid":"u","ownerReferences":[{"apiVersion":"v1","kind":"K","name":"a","uid":"a","blockOwnerDeletion":false},{"apiVersion":"v1","kind":"K","name":"b","uid":"b"}]}}`,
		},
		{
			"finalizer", must(finalizerPatch(latest, "foregroundDeletion")),
			`{"metadata":{"resourceVersion":"7","finalizers":["a","b"]}}`,
		},
		{
			"the last finalizer", must(finalizerPatch(bare, "orphan")),
			`{"metadata":{"resourceVersion":"7","finalizers":null}}`,
		},
	} {
		if tt.got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, tt.got, tt.want)
		}
	}
	if len(latest.Finalizers) != 3 || !blocking(latest.OwnerReferences[0]) {
		t.Errorf("the object was changed: %+v", latest)
	}
}
