package replicaset_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// Source: k8s.io/kubernetes v1.37.2 test/integration/replicaset/replicaset_test.go, TestSpecReplicasChange
func TestScale(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create("web", 3)
		pods := c.podsOf("web")
		equal(t, "pods", len(pods), 3)
		for _, pod := range pods {
			if !strings.HasPrefix(pod.Name, "web-") || len(pod.Name) != len("web-xxxxx") {
				t.Errorf("name %q", pod.Name)
			}
			equal(t, "owner", metav1.IsControlledBy(&pod, c.set("web")), true)
		}
		c.edit("web", replicas(5))
		equal(t, "pods after growing", len(c.podsOf("web")), 5)
		c.runAll()
		equal(t, "status", c.status("web"), appsv1.ReplicaSetStatus{
			Replicas: 5, FullyLabeledReplicas: 5, ReadyReplicas: 5, AvailableReplicas: 5,
			TerminatingReplicas: ptr.To[int32](0), ObservedGeneration: 2,
		})
		c.edit("web", replicas(2))
		equal(t, "pods after shrinking", len(c.podsOf("web")), 2)
		equal(t, "status", c.status("web"), appsv1.ReplicaSetStatus{
			Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
			TerminatingReplicas: ptr.To[int32](3), ObservedGeneration: 3,
		})
		c.bury()
		equal(t, "terminating when they are gone", *c.status("web").TerminatingReplicas, 0)
		c.edit("web", replicas(0))
		c.bury()
		equal(t, "pods of none", len(c.pods()), 0)
		equal(t, "creates and deletes in all", []int{c.writes("create pods"), c.writes("delete pods")}, []int{5, 5})
		equal(t, "events", c.events("web"), map[string]int{"Normal SuccessfulCreate": 5, "Normal SuccessfulDelete": 5})
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, updatePod and deletePod
func TestKilledPodsAreReplacedAtOnce(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create("web", 3)
		c.runAll()
		victim := c.podsOf("web")[0].Name
		c.deletePod(victim)
		// It still terminates, and its replacement is there.
		equal(t, "pods", len(c.podsOf("web")), 3)
		equal(t, "status", c.status("web"), appsv1.ReplicaSetStatus{
			Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 2,
			TerminatingReplicas: ptr.To[int32](1), ObservedGeneration: 1,
		})
		c.bury()
		c.runAll()
		equal(t, "status", c.status("web"), appsv1.ReplicaSetStatus{
			Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
			TerminatingReplicas: ptr.To[int32](0), ObservedGeneration: 1,
		})
		equal(t, "creates", c.writes("create pods"), 4)
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/replicaset/replicaset_test.go, TestDeletingAndFailedPods
func TestFailedPodsAreReplacedAndKept(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create("web", 2)
		failed := c.podsOf("web")[0].Name
		c.report(failed, corev1.PodFailed, false)
		equal(t, "pods, the failed one included", len(c.podsOf("web")), 3)
		equal(t, "replicas", c.status("web").Replicas, 2)
		equal(t, "deletes", c.writes("delete pods"), 0)
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/replicaset/replicaset_test.go, TestAdoption,
// TestGeneralPodAdoption and TestExtraPodsAdoptionAndDeletion
func TestOrphansAreAdopted(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.createPod("first", "web")
		c.createPod("other", "db")
		c.create("web", 2)
		equal(t, "pods of the set", len(c.podsOf("web")), 2)
		equal(t, "creates", c.writes("create pods"), 1)
		ref := metav1.GetControllerOf(&c.pods()[0])
		equal(t, "owner of the first", ref,
			metav1.NewControllerRef(c.set("web"), appsv1.SchemeGroupVersion.WithKind("ReplicaSet")))

		// A surplus orphan is adopted all the same, and then one pod is deleted.
		c.createPod("late", "web")
		equal(t, "pods of the set", len(c.podsOf("web")), 2)
		equal(t, "deletes", c.writes("delete pods"), 1)
		equal(t, "patches", c.writes("patch pods"), 2)
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/replicaset/replicaset_test.go,
// TestPodOrphaningAndAdoptionWhenLabelsChange
func TestLabelsDecideOwnership(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create("web", 1)
		pod := c.podsOf("web")[0].Name
		c.editPod(pod, func(p *corev1.Pod) { p.Labels["app"] = "debug" })
		equal(t, "pods of the set", len(c.podsOf("web")), 1)
		if c.podsOf("web")[0].Name == pod {
			t.Error("the relabelled pod was not released")
		}
		equal(t, "pods in all", len(c.pods()), 2)

		c.editPod(pod, func(p *corev1.Pod) { p.Labels["app"] = "web" })
		equal(t, "pods in all", len(c.pods()), 1) // it was adopted, and one of the two was too many
		equal(t, "pods of the set", len(c.podsOf("web")), 1)
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/replicaset/replicaset_test.go, TestOverlappingRSs
func TestOverlappingSetsDoNotFight(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		both := func(s *appsv1.ReplicaSet) {
			s.Spec.Selector.MatchLabels = map[string]string{"app": "shared"}
			s.Spec.Template.Labels = map[string]string{"app": "shared"}
		}
		c.create("one", 2, both)
		c.create("two", 3, both)
		c.createPod("orphan", "shared")
		c.pass(time.Hour)
		equal(t, "pods of each", []int{len(c.podsOf("one")), len(c.podsOf("two"))}, []int{2, 3})
		equal(t, "creates and deletes", []int{c.writes("create pods"), c.writes("delete pods")}, []int{5, 1})
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/replicaset/replicaset_test.go, TestPodDeletionCost
func TestDeletionCost(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create("web", 2)
		c.runAll()
		cheap, dear := c.podsOf("web")[0].Name, c.podsOf("web")[1].Name
		c.editPod(cheap, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "100"} })
		c.editPod(dear, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "1000"} })
		c.edit("web", replicas(1))
		equal(t, "the survivor", c.podsOf("web")[0].Name, dear)
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/replicaset/replicaset_test.go, TestReadyAndAvailableReplicas, and
// pkg/controller/replicaset/replica_set.go, syncReplicaSet
func TestAvailabilityComesInTime(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create("web", 3, func(s *appsv1.ReplicaSet) { s.Spec.MinReadySeconds = 60 })
		for _, pod := range c.podsOf("web") {
			c.report(pod.Name, corev1.PodRunning, true)
			c.pass(10 * time.Second)
		}
		equal(t, "ready after 30 s", c.status("web").ReadyReplicas, 3)
		for i, after := range []time.Duration{30 * time.Second, 10 * time.Second, 10 * time.Second} {
			c.pass(after - time.Millisecond)
			equal(t, "available a moment before", c.status("web").AvailableReplicas, int32(i))
			c.pass(time.Millisecond)
			equal(t, "available in time", c.status("web").AvailableReplicas, int32(i+1))
		}
		before := c.writes("update replicasets/status")
		c.pass(time.Hour)
		equal(t, "status writes in an hour after", c.writes("update replicasets/status")-before, 0)
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/replicaset/replicaset_test.go, TestFullyLabeledReplicas
func TestFullyLabelled(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create("web", 2)
		c.edit("web", func(s *appsv1.ReplicaSet) { s.Spec.Template.Labels["more"] = "x" })
		equal(t, "fully labelled", c.status("web").FullyLabeledReplicas, 0)
		c.editPod(c.podsOf("web")[0].Name, func(p *corev1.Pod) { p.Labels["more"] = "x" })
		equal(t, "fully labelled", c.status("web").FullyLabeledReplicas, 1)
	})
}

// A restart, a relist and the passing of time cause no writes.
func TestNoWritesWithoutAChange(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create("web", 3)
		c.create("idle", 0)
		c.runAll()
		c.pass(time.Minute)
		c.log.Reset()
		c.stop()
		c.start()
		c.pass(time.Hour)
		equal(t, "writes", c.allWrites(), nil)
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, BurstReplicas
func TestBurstOfCreates(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create("web", 510)
		equal(t, "pods", len(c.podsOf("web")), 510)
		equal(t, "creates", c.writes("create pods"), 510)
		c.edit("web", replicas(0))
		equal(t, "pods", len(c.pods()), 0)
		equal(t, "deletes", c.writes("delete pods"), 510)
	})
}

// refusing is a gate that answers creates of pods with err while on is true.
func refusing(on *atomic.Bool, err *apierrors.StatusError) gate.Gate {
	return gate.Funcs{OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
		if on.Load() && r.Verb == "create" && r.Resource == "pods" && strings.HasPrefix(r.UserAgent, agent) {
			return gate.Verdict{Action: gate.Fail, Status: &err.ErrStatus}
		}
		return gate.Verdict{}
	}}
}

var quota = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
	Message: `pods "web-" is forbidden: exceeded quota`,
}}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_test.go, TestSyncReplicaSetCreateFailures,
// and replica_set.go, slowStartBatch and processNextWorkItem
func TestFailingCreates(t *testing.T) {
	var on atomic.Bool
	on.Store(true)
	run(t, localapi.Options{Gate: refusing(&on, quota)}, func(c *cluster) {
		c.create("web", 100)
		c.pass(time.Minute)
		condition := c.set("web").Status.Conditions[0]
		equal(t, "condition",
			[]string{string(condition.Type), string(condition.Status), condition.Reason, condition.Message},
			[]string{"ReplicaFailure", "True", "FailedCreate", quota.ErrStatus.Message})
		// Each sync tries once; the delays double: 5 ms, 10 ms, … 41 s.
		tries := c.writes("create pods")
		if tries < 12 || tries > 18 {
			t.Errorf("%d tries in a minute, want about 15", tries)
		}
		equal(t, "status writes", c.writes("update replicasets/status"), 1)

		// There is no limit: a try after the longest delay succeeds.
		c.pass(time.Hour)
		on.Store(false)
		c.pass(20 * time.Minute)
		equal(t, "pods", len(c.podsOf("web")), 100)
		equal(t, "conditions", len(c.set("web").Status.Conditions), 0)
		if e := c.events("web"); e["Warning FailedCreate"] == 0 || e["Normal SuccessfulCreate"] == 0 {
			t.Errorf("events = %v", e)
		}
	})
}

// Deletes are retried as creates are.
func TestFailingDeletes(t *testing.T) {
	var on atomic.Bool
	on.Store(true)
	broken := gate.Funcs{OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
		if on.Load() && r.Verb == "delete" && r.Resource == "pods" {
			return gate.Verdict{Action: gate.Fail, Status: &quota.ErrStatus}
		}
		return gate.Verdict{}
	}}
	run(t, localapi.Options{Gate: broken}, func(c *cluster) {
		c.create("web", 3)
		c.edit("web", replicas(1))
		condition := c.set("web").Status.Conditions[0]
		equal(t, "condition", []string{condition.Reason, condition.Message},
			[]string{"FailedDelete", "unable to delete pods: " + quota.ErrStatus.Message})
		on.Store(false)
		c.pass(time.Minute)
		equal(t, "pods", len(c.podsOf("web")), 1)
		equal(t, "conditions", len(c.set("web").Status.Conditions), 0)
	})
}

// holdup is a gate that holds back every frame of the controller's watches of pods until a given time.
type holdup struct{ until atomic.Int64 } // Unix nanoseconds

func (h *holdup) hold(d time.Duration) { h.until.Store(time.Now().Add(d).UnixNano()) }

func (h *holdup) gate() gate.Gate {
	return gate.Funcs{OnFrame: func(ctx context.Context, r *gate.Request, _ gate.Frame) gate.Verdict {
		if wait := time.Until(time.Unix(0, h.until.Load())); wait > 0 && r.Resource == "pods" &&
			strings.HasPrefix(r.UserAgent, agent) {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
		return gate.Verdict{}
	}}
}

// However late the watch is, no pod is created or deleted twice.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/util/consistency/consistency.go
func TestLateWatchesDoNotMakeMore(t *testing.T) {
	// the last is longer than expectations live
	for _, delay := range []time.Duration{time.Second, time.Minute, 20 * time.Minute} {
		t.Run(delay.String(), func(t *testing.T) {
			var late holdup
			run(t, localapi.Options{Gate: late.gate()}, func(c *cluster) {
				touch := func() { // cause another sync
					c.edit("web", func(s *appsv1.ReplicaSet) {
						metav1.SetMetaDataAnnotation(&s.ObjectMeta, "touched", time.Now().String())
					})
				}
				late.hold(delay)
				c.create("web", 4)
				for range 4 {
					touch()
					c.pass(delay / 4)
				}
				c.pass(time.Second)
				equal(t, "creates", c.writes("create pods"), 4)
				equal(t, "replicas", c.status("web").Replicas, 4)

				late.hold(delay)
				c.edit("web", replicas(1))
				for range 4 {
					touch()
					c.pass(delay / 4)
				}
				c.pass(time.Second)
				equal(t, "pods", len(c.pods()), 1)
				equal(t, "replicas", c.status("web").Replicas, 1)
				equal(t, "creates in all", c.writes("create pods"), 4)
				equal(t, "events", c.events("web"),
					map[string]int{"Normal SuccessfulCreate": 4, "Normal SuccessfulDelete": 3})
			})
		})
	}
}

// A set that is created again after it was deleted with its pods orphaned adopts them. It does not wait for the writes
// for the old set.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_test.go, TestExpectationsOnRecreate
func TestRecreatedSetStartsClean(t *testing.T) {
	var late holdup
	run(t, localapi.Options{Gate: late.gate()}, func(c *cluster) {
		late.hold(time.Minute)
		c.create("web", 2)
		orphan := metav1.DeletePropagationOrphan
		c.must(
			c.client.AppsV1().ReplicaSets("default").Delete(c.t.Context(), "web",
				metav1.DeleteOptions{PropagationPolicy: &orphan}),
		)
		c.quiet()
		for _, pod := range c.pods() { // what the garbage collector does
			c.editPod(pod.Name, func(p *corev1.Pod) { p.OwnerReferences = nil })
		}
		c.edit("web", func(s *appsv1.ReplicaSet) { s.Finalizers = nil })
		c.create("web", 3)
		c.pass(time.Hour)
		equal(t, "pods of the set", len(c.podsOf("web")), 3)
	})
}

// If the response to a create is lost, the controller does not know of the pod. It sees the pod in the end, and deletes
// a surplus one.
func TestLostAnswers(t *testing.T) {
	var left atomic.Int32
	left.Store(3)
	lossy := gate.Funcs{OnAnswer: func(_ context.Context, r *gate.Request, _ gate.Answer) gate.Verdict {
		if r.Verb == "create" && r.Resource == "pods" && left.Add(-1) >= 0 {
			return gate.Verdict{Action: gate.Drop}
		}
		return gate.Verdict{}
	}}
	run(t, localapi.Options{Gate: lossy}, func(c *cluster) {
		c.create("web", 5)
		c.pass(time.Minute)
		equal(t, "pods", len(c.podsOf("web")), 5)
		equal(t, "replicas", c.status("web").Replicas, 5)
		equal(t, "conditions", len(c.set("web").Status.Conditions), 0)
	})
}
