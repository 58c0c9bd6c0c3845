package namespaces

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

func show(conditions []corev1.NamespaceCondition) string {
	var b strings.Builder
	for _, c := range conditions {
		b.WriteString(strings.Join([]string{string(c.Type), string(c.Status), c.Reason, c.Message}, " | ") + "\n")
	}
	return b.String()
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/namespace/deletion/status_condition_utils.go.
func TestConditions(t *testing.T) {
	const (
		discovered = "NamespaceDeletionDiscoveryFailure | False | ResourcesDiscovered | All resources successfully " +
			"discovered\n"
		parsed = "NamespaceDeletionGroupVersionParsingFailure | False | ParsedGroupVersions | All legacy kube types " +
			"successfully parsed\n"
		deleted = "NamespaceDeletionContentFailure | False | ContentDeleted | All content successfully deleted, may " +
			"be waiting on finalization\n"
		removed  = "NamespaceContentRemaining | False | ContentRemoved | All content successfully removed\n"
		finished = "NamespaceFinalizersRemaining | False | ContentHasNoFinalizers | All content-preserving " +
			"finalizers " +
			"finished\n"
	)
	pod, set := schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	down := &discovery.ErrGroupDiscoveryFailed{
		Groups: map[schema.GroupVersion]error{{Group: "example.com", Version: "v1"}: errors.New("down")},
	}
	for _, tc := range []struct {
		name  string
		found contents
		want  string
	}{
		{"nothing left", contents{}, discovered + parsed + deleted + removed + finished},
		{
			"content with finalizers", contents{
				remaining:  map[schema.GroupVersionResource]int{set: 1, pod: 2},
				finalizers: map[string]int{"b": 1, "a": 2},
			}, discovered + parsed + deleted +
				"NamespaceContentRemaining | True | SomeResourcesRemain | Some resources are remaining: pods. has 2 " +
				"resource instances, replicasets.apps has 1 resource instances\n" +
				"NamespaceFinalizersRemaining | True | SomeFinalizersRemain | Some content in the namespace has " +
				"finalizers remaining: a in 2 resource instances, b in 1 resource instances\n",
		},
		{"pods", contents{podsFirst: true, remaining: map[schema.GroupVersionResource]int{pod: 2}}, discovered +
			parsed + deleted + removed + finished},
		{
			"failures", contents{
				failed: []failure{{set.GroupResource(), errors.New("y")}, {pod.GroupResource(), errors.New("x")}},
			}, discovered + parsed +
				"NamespaceDeletionContentFailure | True | ContentDeletionFailed | Failed to delete all resource " +
				"types, " +
				"2 remaining: x, y\n" + removed + finished,
		},
		{
			"some groups unknown",
			contents{discovery: down},
			"NamespaceDeletionDiscoveryFailure | True | DiscoveryFailed | Discovery failed for some groups, 1 " +
				"failing: " +
				"unable to retrieve the complete list of server APIs: example.com/v1: down\n" +
				parsed + deleted + removed + finished,
		},
		{
			"bad group version",
			contents{discovery: errors.New("no"), parsing: errors.New("bad")},
			"NamespaceDeletionDiscoveryFailure | True | DiscoveryFailed | no\n" +
				"NamespaceDeletionGroupVersionParsingFailure | True | GroupVersionParsingFailed | bad\n" + deleted +
				removed + finished,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := show(tc.found.conditions()); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// A condition keeps its time while its status stays, and what is the same is not written again.
func TestSetConditions(t *testing.T) {
	early, late := metav1.Unix(1000, 0), metav1.Unix(2000, 0)
	status := &corev1.NamespaceStatus{
		Conditions: []corev1.NamespaceCondition{{Type: "Custom", Status: corev1.ConditionTrue}},
	}
	if !setConditions(status, fine(), early) || setConditions(status, fine(), late) {
		t.Error("the first time is a change, the second is none")
	}
	wanted := fine()
	wanted[0].Message = "another"
	wanted[1].Status = corev1.ConditionTrue
	if !setConditions(status, wanted, late) {
		t.Error("no change")
	}
	if got := status.Conditions; len(got) != 6 || got[0].Type != "Custom" || got[1].Message != "another" ||
		!got[1].LastTransitionTime.Equal(&early) || !got[2].LastTransitionTime.Equal(&late) {
		t.Errorf("got %v", got)
	}
}

func TestDeletables(t *testing.T) {
	all, err := deletables([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "secrets", Verbs: metav1.Verbs{"delete", "deletecollection", "list"}},
			{Name: "bindings", Verbs: metav1.Verbs{"create"}},
			{Name: "odd", Verbs: metav1.Verbs{"delete"}},
		}},
		{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "x", Verbs: metav1.Verbs{"delete"}}}},
	})
	if err == nil || len(all) != 2 {
		t.Fatalf("got %v, %v", all, err)
	}
	if odd, secrets := all[0], all[1]; odd.list || odd.deleteCollection || !secrets.list || !secrets.deleteCollection {
		t.Errorf("got %v", all)
	}
}

// No resource at all is a server that is not ready, not an empty namespace.
func TestFoundErrors(t *testing.T) {
	base := errors.New("base")
	err := contents{
		failed: []failure{{schema.GroupResource{Resource: "pods"}, base}}, parsing: errors.New("p"),
		discovery: errors.New("d"),
	}.err()
	if !errors.Is(err, base) || err.Error() != "delete pods: base\nread group versions: p\ndiscover resources: d" {
		t.Errorf("got %q", err)
	}
	if (contents{wait: time.Second}).err() != nil {
		t.Error("waiting is no error")
	}
}
