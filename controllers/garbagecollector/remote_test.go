package garbagecollector

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/fake"
	kubetesting "k8s.io/client-go/testing"
)

var errConflict = apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", fmt.Errorf("changed"))

// script answers requests in turn, and records them.
type script struct {
	t       *testing.T
	answers []answer
	asked   []string
}

type answer struct {
	object *metav1.PartialObjectMetadata
	err    error
}

func (s *script) react(a kubetesting.Action) (bool, runtime.Object, error) {
	s.asked = append(s.asked, describe(a))
	if len(s.answers) == 0 {
		s.t.Errorf("unexpected request %s", describe(a))
		return true, nil, errConflict
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	if next.object == nil {
		return true, nil, next.err
	}
	return true, next.object, next.err
}

// describe returns "get p", "delete p uid=u rv=7 policy=Background", "strategic p" or "merge p".
func describe(a kubetesting.Action) string {
	switch a := a.(type) {
	case kubetesting.GetActionImpl:
		return "get " + a.Name
	case kubetesting.DeleteActionImpl:
		s := fmt.Sprintf("delete %s uid=%s", a.Name, *a.DeleteOptions.Preconditions.UID)
		if rv := a.DeleteOptions.Preconditions.ResourceVersion; rv != nil {
			s += " rv=" + *rv
		}
		return s + " policy=" + string(*a.DeleteOptions.PropagationPolicy)
	case kubetesting.PatchActionImpl:
		return map[types.PatchType]string{
			types.StrategicMergePatchType: "strategic ",
			types.MergePatchType:          "merge ",
		}[a.PatchType] + a.Name
	}
	return a.GetVerb()
}

func scripted(t *testing.T, answers ...answer) (*remote, *script) {
	t.Helper()
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleMetadataClient(scheme)
	s := &script{t: t, answers: answers}
	client.PrependReactor("*", "*", s.react)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	return &remote{client: client, mapper: mapper}, s
}

// podAt returns the pod p at a resource version.
func podAt(version string, owners ...string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", UID: "u", ResourceVersion: version,
			Finalizers: []string{"orphan"},
		},
	}
	for _, s := range owners {
		o.OwnerReferences = append(o.OwnerReferences, ref(s))
	}
	return o
}

func reborn(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	o.UID = "another"
	return o
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/operations.go, deleteObject
func TestRemoteRemove(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")
	const first, owner = "delete p uid=u rv=7 policy=Background", "K ns/a a"
	tests := []struct {
		name    string
		answers []answer
		asked   string
		is      func(error) bool
	}{
		{"at once", []answer{{}}, first, isNil},
		{"gone", []answer{{err: notFound}}, first, apierrors.IsNotFound},
		{
			"changed, gone by now",
			[]answer{{err: errConflict}, {err: notFound}},
			first + "; get p",
			apierrors.IsNotFound,
		},
		{"changed in what does not matter", []answer{{err: errConflict}, {object: podAt("8", owner)}, {}}, first +
			"; get p; delete p uid=u policy=Background", isNil},
		{"changed in its owners", []answer{{err: errConflict}, {object: podAt("8", owner, "K ns/b b")}}, first +
			"; get p", apierrors.IsConflict},
		{
			"another of the name",
			[]answer{{err: errConflict}, {object: reborn(podAt("8", owner))}},
			first + "; get p",
			apierrors.IsConflict,
		},
		{
			"not changed at all",
			[]answer{{err: errConflict}, {object: podAt("7", owner)}},
			first + "; get p",
			apierrors.IsConflict,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, s := scripted(t, tt.answers...)
			err := r.remove(t.Context(), id("Pod ns/p u"), podAt("7", owner),
				policy(metav1.DeletePropagationBackground))
			if got := strings.Join(s.asked, "; "); got != tt.asked || !tt.is(err) {
				t.Errorf("asked %q, want %q; error %v", got, tt.asked, err)
			}
		})
	}
}

func isNil(err error) bool { return err == nil }

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/patch.go, patch
func TestRemotePatch(t *testing.T) {
	unsupported := &apierrors.StatusError{
		ErrStatus: metav1.Status{Reason: metav1.StatusReasonUnsupportedMediaType, Code: 415},
	}
	tests := []struct {
		name    string
		answers []answer
		asked   string
		is      func(error) bool
	}{
		{"strategic", []answer{{object: podAt("8")}}, "strategic p", isNil},
		{"refused", []answer{{err: errConflict}}, "strategic p", apierrors.IsConflict},
		{
			"merge",
			[]answer{{err: unsupported}, {object: podAt("7")}, {object: podAt("8")}},
			"strategic p; get p; merge p", isNil,
		},
		{
			"merge, changed meanwhile",
			[]answer{
				{err: unsupported},
				{object: podAt("7")},
				{err: errConflict},
				{object: podAt("8")},
				{object: podAt("9")},
			},
			"strategic p; get p; merge p; get p; merge p", isNil,
		},
		{
			"merge, another of the name",
			[]answer{{err: unsupported}, {object: reborn(podAt("7"))}},
			"strategic p; get p", apierrors.IsNotFound,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, s := scripted(t, tt.answers...)
			err := r.disown(t.Context(), id("Pod ns/p u"), "a")
			if got := strings.Join(s.asked, "; "); got != tt.asked || !tt.is(err) {
				t.Errorf("asked %q, want %q; error %v", got, tt.asked, err)
			}
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/operations.go, removeFinalizer
func TestRemoteRemoveFinalizer(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")
	bare := podAt("7")
	bare.Finalizers = nil
	tests := []struct {
		name    string
		answers []answer
		asked   string
	}{
		{"has it", []answer{{object: podAt("7")}, {object: podAt("8")}}, "get p; merge p"},
		{
			"has it, changed meanwhile",
			[]answer{{object: podAt("7")}, {err: errConflict}, {object: podAt("8")}, {object: podAt("9")}},
			"get p; merge p; get p; merge p",
		},
		{"has it not", []answer{{object: bare}}, "get p"},
		{"gone", []answer{{err: notFound}}, "get p"},
		{"another of the name", []answer{{object: reborn(podAt("7"))}}, "get p"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, s := scripted(t, tt.answers...)
			err := r.removeFinalizer(t.Context(), id("Pod ns/p u"), metav1.FinalizerOrphanDependents)
			if got := strings.Join(s.asked, "; "); got != tt.asked || err != nil {
				t.Errorf("asked %q, want %q; error %v", got, tt.asked, err)
			}
		})
	}
}

func TestRemoteNamespaces(t *testing.T) {
	r, s := scripted(t, answer{object: podAt("1")})
	if _, err := r.get(t.Context(), id("Pod /p u")); err != errNoNamespace {
		t.Errorf("a pod without namespace: %v", err)
	}
	if _, err := r.get(t.Context(), id("Node ns/n u")); err != nil || len(s.asked) != 1 {
		t.Errorf("a node with namespace: %v, asked %v", err, s.asked)
	}
	if _, err := r.get(t.Context(), id("Unknown ns/n u")); !isUnresolved(err) ||
		!strings.Contains(err.Error(), "Unknown") {
		t.Errorf("an unknown kind: %v", err)
	}
}
