package replicaset

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/reconcile"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_test.go, TestSyncReplicaSetDoesNothing
func TestSyncWritesNothingWhenNothingChanged(t *testing.T) {
	set := newSet(2, steady(2))
	f := newFixture(t, set, numbered(2, ownedBy(set))...)
	result := f.mustSync(t)
	equal(t, "requests", f.requests(), nil)
	equal(t, "events", f.recorder.events, nil)
	equal(t, "result", result, reconcile.Result{})
	equal(t, "unseen", f.client.Stats().Unseen, 0)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, manageReplicas and slowStartBatch
func TestSyncCreatesWhatIsMissing(t *testing.T) {
	set := newSet(3)
	f := newFixture(t, set, newPod("p", ownedBy(set)))
	f.mustSync(t)
	equal(t, "requests", f.requests(), []string{"create pods", "create pods", "update replicasets/status"})
	equal(t, "events", f.recorder.events, []string{
		"Normal SuccessfulCreate Created pod: web-0", "Normal SuccessfulCreate Created pod: web-1",
	})
	// Pods created a moment ago are not counted yet.
	equal(t, "status", f.status(t), appsv1.ReplicaSetStatus{
		Replicas: 1, FullyLabeledReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		TerminatingReplicas: ptr.To[int32](0), ObservedGeneration: 1,
	})
	f.show(t)
	f.mustSync(t)
	equal(t, "requests when the cache shows them", f.requests(), []string{"update replicasets/status"})
	equal(t, "replicas", f.status(t).Replicas, 3)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_test.go, TestSyncReplicaSetDormancy
func TestSyncWaitsForWhatItWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := newSet(2)
		f := newFixture(t, set)
		f.mustSync(t)
		f.requests()

		// The caches have not changed: the whole sync is postponed.
		f.mustWait(t)
		equal(t, "requests", f.requests(), nil)

		// The caches show the pods, but not the set's own status.
		f.podCache.watermark = "101"
		written := set.DeepCopy()
		written.ResourceVersion = "50"
		if err := f.client.Update(writtenBy(t.Context(), set), written); err != nil {
			t.Fatal(err)
		}
		f.requests()
		f.mustWait(t)
		equal(t, "requests", f.requests(), nil)

		// The caches show everything.
		f.show(t)
		f.mustSync(t)
		equal(t, "requests", f.requests(), []string{"update replicasets/status"})
	})
}

// If versions do not compare, every created pod has to be seen before the next sync.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_test.go, TestRSSyncExpectations and
// TestSyncReplicaSetDormancy
func TestSyncCountsNothingBeforeItsPodsAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, newSet(3))
		f.podCache.watermark, f.setCache.watermark = "opaque", "opaque"
		f.mustSync(t)
		created := f.podsOnServer(t)
		f.requests()
		f.podCache.put(created[0])
		f.mustWait(t)

		// The cache never shows the others: after a while it is believed.
		time.Sleep(time.Minute + 1)
		f.mustSync(t)
		equal(t, "requests", f.requests(), []string{"create pods", "create pods", "update replicasets/status"})
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, syncReplicaSet
// (TestDeleteControllerAndExpectations)
func TestSyncOfASetThatIsGone(t *testing.T) {
	set := newSet(1)
	f := newFixture(t, set)
	f.mustSync(t)
	f.setCache.remove(set)
	equal(t, "result", f.mustSync(t), reconcile.Result{})

	// A set of the same name starts without waiting.
	f.recreate(t)
	f.mustSync(t)
	equal(t, "requests", f.requests(), []string{"create pods", "update replicasets/status"})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_test.go, TestExpectationsOnRecreate
func TestRecreatedSetDoesNotWaitForThePodsOfTheOld(t *testing.T) {
	f := newFixture(t, newSet(1))
	f.mustSync(t)
	f.recreate(t)
	f.mustSync(t)
	equal(t, "requests", f.requests(), []string{"create pods", "update replicasets/status"})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_test.go, TestReplicaSetAvailabilityCheck
func TestSyncRequeuesForAvailability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ago := func(d time.Duration) podOption { return readySince(time.Now().Add(-d)) }
		set := newSet(3, minReady(30))
		f := newFixture(t, set, newPod("a", ownedBy(set), ago(time.Minute)),
			newPod("b", ownedBy(set), ago(12*time.Second)), newPod("c", ownedBy(set), ago(20*time.Second)))
		equal(t, "result", f.mustSync(t), reconcile.Result{RequeueAfter: 10 * time.Second})
		equal(t, "available", f.status(t).AvailableReplicas, 1)

		time.Sleep(10 * time.Second)
		f.show(t)
		equal(t, "result", f.mustSync(t), reconcile.Result{RequeueAfter: 8 * time.Second})
		equal(t, "available", f.status(t).AvailableReplicas, 2)

		time.Sleep(8 * time.Second)
		f.show(t)
		equal(t, "result", f.mustSync(t), reconcile.Result{})
		equal(t, "available", f.status(t).AvailableReplicas, 3)
	})
}

// What became due while the status was being written is due at once.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, FindMinNextPodAvailabilityCheck
func TestSyncRequeuesAtOnceForWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := newSet(1, minReady(30))
		f := newFixture(t, set, newPod("a", ownedBy(set), readySince(time.Now().Add(-29*time.Second))))
		f.server.PrependReactor("update", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) {
			time.Sleep(5 * time.Second)
			return false, nil, nil
		})
		equal(t, "result", f.mustSync(t), reconcile.Result{RequeueAfter: time.Nanosecond})
	})
}
