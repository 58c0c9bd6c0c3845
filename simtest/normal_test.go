package simtest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// Of two pods with generated names one has an owner that exists, the other the owner before. Which of the two names
// comes first is chance.
func TestEndsDoNotDependOnGeneratedNames(t *testing.T) {
	const now = types.UID("aaaaaaaa-0000-0000-0000-000000000001")
	const before = types.UID("bbbbbbbb-0000-0000-0000-000000000002")
	pod := func(name string, owner types.UID) (id, stored) {
		return id{resource{GroupResource: corev1.Resource("pods")}, "default", name}, stored{
			object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, GenerateName: "web-",
				OwnerReferences: []metav1.OwnerReference{{Kind: "ConfigMap", Name: "web", UID: owner}},
			}}, kind: corev1.SchemeGroupVersion.WithKind("Pod"), revision: 5,
		}
	}
	end := func(first, second types.UID) *end {
		s := &State{scheme: clientscheme.Scheme, objects: map[id]stored{
			{resource{GroupResource: corev1.Resource("configmaps")}, "default", "web"}: {
				object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: now}},
				kind:   corev1.SchemeGroupVersion.WithKind("ConfigMap"), revision: 4,
			},
		}}
		for name, owner := range map[string]types.UID{"web-ccccc": first, "web-bbbbb": second} {
			i, o := pod(name, owner)
			s.objects[i] = o
		}
		return normalize(s, 1)
	}
	if diff := end(now, before).diff(end(before, now)); len(diff) > 0 {
		t.Errorf("the ends differ: %q", diff)
	}
	if diff := end(now, before).diff(end(now, now)); len(diff) == 0 {
		t.Error("an owner that is gone is taken for one that exists")
	}
}
