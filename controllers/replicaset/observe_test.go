package replicaset

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/reconcile"
)

// Source: k8s.io/kubernetes v1.37.2 test/integration/replicaset/replicaset_test.go, TestDeletingAndFailedPods and
// TestTerminatingReplicas
func TestPodsThatDoNotCount(t *testing.T) {
	set := newSet(1)
	unmatched := labelled("app", "other")
	f := newFixture(t, set,
		newPod("failed", ownedBy(set), inPhase(corev1.PodFailed)),
		newPod("succeeded", ownedBy(set), inPhase(corev1.PodSucceeded)),
		newPod("leaving", ownedBy(set), deleting),
		newPod("left", ownedBy(set), deleting, inPhase(corev1.PodFailed)),
		newPod("leaving-unmatched", ownedBy(set), deleting, unmatched),
		newPod("leaving-orphan", deleting),
		newPod("failed-orphan", inPhase(corev1.PodFailed)),
		newPod("failed-unmatched", ownedBy(set), inPhase(corev1.PodFailed), unmatched),
	)
	f.mustSync(t)
	// None is adopted, released or counted; one is missing.
	equal(t, "requests", f.requests(), []string{"create pods", "update replicasets/status"})
	equal(t, "status", f.status(t),
		appsv1.ReplicaSetStatus{TerminatingReplicas: ptr.To[int32](1), ObservedGeneration: 1})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, claimPods
func TestSyncClaims(t *testing.T) {
	set := newSet(2)
	f := newFixture(t, set, newPod("orphan"), newPod("own", ownedBy(set)),
		newPod("unmatched", ownedBy(set), labelled("app", "other")))
	f.mustSync(t)
	equal(t, "requests", f.requests(), []string{
		"get replicasets", // may it adopt?
		"patch pods orphan", "patch pods unmatched", "update replicasets/status",
	})
	equal(t, "status", f.status(t).Replicas, 2)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_test.go, TestPatchPodFails,
// TestDoNotPatchPodWithOtherControlRef, TestDoNotAdoptOrCreateIfBeingDeleted and
// TestDoNotAdoptOrCreateIfBeingDeletedRace
func TestSyncDoesNotActOnAFailedClaim(t *testing.T) {
	t.Run("a patch fails", func(t *testing.T) {
		f := newFixture(t, newSet(2), newPod("a"), newPod("b"))
		f.server.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("fake error")
		})
		if _, err := f.sync(t.Context()); err == nil || !strings.Contains(err.Error(), "fake error") {
			t.Errorf("error = %v", err)
		}
		equal(t, "requests", f.requests(), []string{"get replicasets", "patch pods a", "patch pods b"})
	})
	t.Run("the pod is somebody else's", func(t *testing.T) {
		other := newSet(1, func(s *appsv1.ReplicaSet) { s.UID = "other" })
		f := newFixture(t, newSet(1), newPod("a", ownedBy(other)))
		f.mustSync(t)
		equal(t, "requests", f.requests(), []string{"create pods", "update replicasets/status"})
	})
	t.Run("the set is being deleted", func(t *testing.T) {
		set := newSet(2, setDeleting)
		f := newFixture(t, set, newPod("orphan"), newPod("own", ownedBy(set)))
		f.mustSync(t)
		equal(t, "requests", f.requests(), []string{"update replicasets/status"})
		equal(t, "replicas", f.status(t).Replicas, 1)
	})
	t.Run("the set is being deleted, but not in the cache", func(t *testing.T) {
		f := newFixture(t, newSet(2), newPod("orphan"))
		if err := f.server.Tracker().Update(appsv1.SchemeGroupVersion.WithResource("replicasets"),
			newSet(2, setDeleting), "ns"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.sync(t.Context()); err == nil {
			t.Error("no error")
		}
		equal(t, "requests", f.requests(), []string{"get replicasets"})
	})
}

// After an adoption the set is not synced until the cache shows it.
func TestSyncWaitsForItsAdoptions(t *testing.T) {
	f := newFixture(t, newSet(1), newPod("orphan"))
	f.server.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, newPod("orphan", ownedBy(newSet(1)), rv("77")), nil
	})
	f.mustSync(t)
	equal(t, "requests", f.requests(), []string{"get replicasets", "patch pods orphan", "update replicasets/status"})
	f.mustWait(t)
	equal(t, "requests while the cache lags", f.requests(), nil)
	f.podCache.watermark = "77"
	f.podCache.put(newPod("orphan", ownedBy(newSet(1)), rv("77")))
	f.setCache.watermark = "99999"
	f.mustSync(t)
	// fake: the cached set is the old one
	equal(t, "requests afterwards", f.requests(), []string{"update replicasets/status"})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, syncReplicaSet, which drops a set with
// an invalid selector; the other two go unchecked there, as the API server lets none of the three through
func TestSelectorsThatCannotWork(t *testing.T) {
	tests := map[string]*metav1.LabelSelector{
		"invalid":                     {MatchLabels: map[string]string{"app": "not/a/valid value"}},
		"missing":                     nil,
		"empty":                       {},
		"not matching the set's pods": {MatchLabels: map[string]string{"app": "other"}},
	}
	for name, selector := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newSet(1, func(s *appsv1.ReplicaSet) { s.Spec.Selector = selector }), newPod("orphan"))
			if _, err := f.sync(t.Context()); !reconcile.IsTerminal(err) {
				t.Errorf("error = %v, want a terminal one", err)
			}
			equal(t, "requests", f.requests(), nil)
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, getIndirectlyRelatedPods
// (TestRelatedPodsLookup)
func TestRelatedPods(t *testing.T) {
	deployment := metav1.OwnerReference{
		APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "d-uid",
		Controller: ptr.To(true),
	}
	other := deployment
	other.UID = "other-uid"
	of := func(owner *metav1.OwnerReference, name string, labels map[string]string) *appsv1.ReplicaSet {
		return newSet(1, func(s *appsv1.ReplicaSet) {
			s.Name, s.UID, s.Spec.Selector = name, types.UID(name), &metav1.LabelSelector{MatchLabels: labels}
			if owner != nil {
				s.OwnerReferences = []metav1.OwnerReference{*owner}
			}
		})
	}
	v1 := of(&deployment, "v1", map[string]string{"app": "web", "v": "1"})
	bare := of(nil, "bare", map[string]string{"app": "bare"})
	pod := func(name string, kv ...string) *corev1.Pod { return newPod(name, labelled(kv...)) }
	f := newFixture(t, v1,
		pod("of-v1", "app", "web", "v", "1"), pod("of-v2", "app", "web", "v", "2"),
		pod("of-both", "app", "web", "v", "2", "w", "3"),
		pod("of-other", "app", "web", "v", "9"), pod("of-bare", "app", "bare"),
		newPod("elsewhere", labelled("app", "web", "v", "1"), func(p *corev1.Pod) { p.Namespace = "elsewhere" }))
	for _, set := range []*appsv1.ReplicaSet{
		of(&deployment, "v2", map[string]string{"v": "2"}), of(&deployment, "v3", map[string]string{"w": "3"}),
		of(&deployment, "broken", map[string]string{"v": "not/a/valid value"}),
		of(&other, "x", map[string]string{"v": "9"}), bare,
	} {
		f.setCache.put(set)
	}
	got := f.relatedPods(v1)
	sortByName(got)
	equal(t, "related to a Deployment's set", namesOf(got), []string{"of-both", "of-v1", "of-v2"})
	equal(t, "related to a set nobody controls", namesOf(f.relatedPods(bare)), nil)
}
