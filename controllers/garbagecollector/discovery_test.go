package garbagecollector

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

func resourceNames(k kinds) string {
	var names []string
	for resource := range maps.Keys(k) {
		names = append(names, resource.String())
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector_test.go, TestGetDeletableResources
func TestDeletable(t *testing.T) {
	all := metav1.Verbs{"delete", "list", "watch", "get"}
	lists := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "Pod", Verbs: all},
			{Name: "events", Kind: "Event", Verbs: all},
			{Name: "bindings", Kind: "Binding", Verbs: metav1.Verbs{"create"}},
			{Name: "unlisted", Kind: "U", Verbs: metav1.Verbs{"delete", "watch"}},
		}},
		{
			GroupVersion: "apps/v1",
			APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Verbs: all}},
		},
		{
			GroupVersion: "events.k8s.io/v1",
			APIResources: []metav1.APIResource{{Name: "events", Kind: "Event", Verbs: all}},
		},
		{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "nonsense", Kind: "N", Verbs: all}}},
	}
	got := deletable(lists, defaultIgnored)
	if names := resourceNames(got); names != "deployments.apps pods" {
		t.Errorf("deletable: %s", names)
	}
	if kind := got[schema.GroupResource{Group: "apps", Resource: "deployments"}]; kind.Version != "v1" ||
		kind.Kind != "Deployment" || kind.Group != "apps" {
		t.Errorf("kind %v", kind)
	}
	if names := resourceNames(
		deletable(lists, []schema.GroupResource{{Resource: "pods"}}),
	); names != "deployments.apps events events.events.k8s.io" {
		t.Errorf("ignoring pods: %s", names)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector_test.go, TestGarbageCollectorSync
func TestMerge(t *testing.T) {
	of := func(groups ...string) kinds {
		k := make(kinds)
		for _, g := range groups {
			k[schema.GroupResource{Group: g, Resource: "things"}] = schema.GroupVersionKind{
				Group: g, Version: "v1", Kind: "Thing",
			}
		}
		return k
	}
	failed := &discovery.ErrGroupDiscoveryFailed{
		Groups: map[schema.GroupVersion]error{{Group: "down", Version: "v1"}: errors.New("503")},
	}
	before := of("up", "down", "removed")
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"all was asked":               {nil, "things.new things.up"},
		"a group could not be asked":  {failed, "things.down things.new things.up"},
		"an error that says not whom": {errors.New("timeout"), "things.new things.up"},
	} {
		if got := resourceNames(merge(before, of("up", "new"), tt.err)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	now := of("down")
	now[schema.GroupResource{Group: "down", Resource: "things"}] = schema.GroupVersionKind{
		Group: "down", Version: "v2", Kind: "Thing",
	}
	if got := merge(before, now, failed); !maps.Equal(got, now) {
		t.Errorf("one version could not be asked, another serves the resource: %v, want %v", got, now)
	}
}

// The graph needs identities, owners and finalizers; labels and annotations are dropped.
func TestStrip(t *testing.T) {
	now := metav1.Now()
	whole := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web", UID: "u", ResourceVersion: "7", DeletionTimestamp: &now,
		Finalizers:      []string{"orphan"},
		OwnerReferences: []metav1.OwnerReference{{Name: "owner", UID: "o"}}, Labels: map[string]string{"a": "b"},
		Annotations:   map[string]string{"note": "long"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}}
	got, err := strip(whole)
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web", UID: "u", ResourceVersion: "7", DeletionTimestamp: &now,
		Finalizers:      []string{"orphan"},
		OwnerReferences: []metav1.OwnerReference{{Name: "owner", UID: "o"}},
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
