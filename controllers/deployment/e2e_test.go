package deployment_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/localapi"
)

// Source: k8s.io/kubernetes v1.37.2 test/integration/deployment/deployment_test.go, TestNewDeployment
func TestNewDeployment(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		d := c.create(20, annotated("test", "should-copy-to-replica-set"),
			annotated(corev1.LastAppliedConfigAnnotation, "should-not-copy"))
		c.settle()
		equal(t, "replica sets", c.shape(), "1:web:1:20")
		equal(t, "counts", c.counts(), "replicas=20 updated=20 ready=20 available=20 unavailable=0")
		equal(t, "conditions", c.conditions(),
			"Available=True/MinimumReplicasAvailable Progressing=True/NewReplicaSetAvailable")
		equal(t, "revision", c.web().Annotations[replicasets.RevisionAnnotation], "1")

		rs := c.sets()[0]
		hash := replicasets.ComputeHash(&d.Spec.Template, nil)
		equal(t, "name", rs.Name, "web-"+hash)
		equal(t, "labels", rs.Labels, map[string]string{"app": "web", "pod-template-hash": hash})
		equal(t, "template labels", rs.Spec.Template.Labels, rs.Labels)
		equal(t, "selector", rs.Spec.Selector.MatchLabels, rs.Labels)
		equal(t, "annotations", rs.Annotations, map[string]string{
			"test":                                "should-copy-to-replica-set",
			replicasets.RevisionAnnotation:        "1",
			replicasets.DesiredReplicasAnnotation: "20",
			replicasets.MaxReplicasAnnotation:     "25",
		})
		equal(t, "owner", rs.OwnerReferences, []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: d.UID, Controller: ptr.To(true),
			BlockOwnerDeletion: ptr.To(true),
		}})
		equal(t, "events", c.events(),
			[]string{"Normal ScalingReplicaSet Scaled up replica set " + rs.Name + " from 0 to 20"})
	})
}

// The real one's steps, as recorded from a lock-step run, are those of 25% of 4 pods: one more, one less at a time.
//
// Source: k8s.io/kubernetes v1.37.2 test/integration/deployment/deployment_test.go, TestDeploymentRollingUpdate
func TestRollingUpdate(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create(4, rolling(1, 1))
		c.settle()
		stop := c.watchLimits(5, 3)
		c.edit(image("2"))
		c.settle()
		stop()
		equal(t, "replica sets", c.shape(), "1:web:1:0 2:web:2:4")
		equal(t, "counts", c.counts(), "replicas=4 updated=4 ready=4 available=4 unavailable=0")
		equal(t, "revision", c.web().Annotations[replicasets.RevisionAnnotation], "2")
		for _, e := range c.events() {
			if !strings.HasPrefix(e, "Normal ScalingReplicaSet Scaled ") {
				t.Errorf("event %q", e)
			}
		}
		c.edit(image("1"))
		c.settle()
		equal(t, "replica sets after going back", c.shape(), "2:web:2:0 3:web:1:4")
		equal(t, "history", c.sets()[1].Annotations[replicasets.RevisionHistoryAnnotation], "1")
	})
}

// watchLimits fails the test when the ReplicaSets ever ask for more than most pods, or fewer than least are available.
func (c *cluster) watchLimits(most, least int32) (stop func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	sets, err := c.client.AppsV1().ReplicaSets("default").Watch(ctx, metav1.ListOptions{})
	c.must(err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		size, up := map[string]int32{}, map[string]int32{}
		for event := range sets.ResultChan() {
			rs, ok := event.Object.(*appsv1.ReplicaSet)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			size[rs.Name], up[rs.Name] = *rs.Spec.Replicas, rs.Status.AvailableReplicas
			var total, available int32
			for name := range size {
				total, available = total+size[name], available+up[name]
			}
			if total > most || available < least && len(size) > 1 {
				c.t.Errorf("%d pods asked for, at most %d allowed; %d available, at least %d needed", total, most,
					available, least)
			}
		}
	}()
	return func() {
		cancel()
		sets.Stop()
		<-ended
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/recreate.go, rolloutRecreate
func TestRecreateNeverRunsTwoVersions(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create(3, recreate)
		c.settle()
		c.edit(image("2"))
		for range 100 {
			images := map[string]bool{}
			pods, err := c.client.CoreV1().Pods("default").List(c.t.Context(), metav1.ListOptions{})
			c.must(err)
			for _, pod := range pods.Items {
				images[pod.Spec.Containers[0].Image] = true
			}
			if len(images) > 1 {
				t.Fatalf("two versions at once: %v", images)
			}
			c.pass(50 * time.Millisecond)
		}
		c.settle()
		equal(t, "replica sets", c.shape(), "1:web:1:0 2:web:2:3")
		equal(t, "counts", c.counts(), "replicas=3 updated=3 ready=3 available=3 unavailable=0")
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/deployment/deployment_test.go, TestPausedDeployment
func TestPauseAndResume(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create(2, paused(true))
		c.settle()
		equal(t, "replica sets of a deployment born paused", c.shape(), "")
		equal(t, "conditions", c.conditions(),
			"Available=False/MinimumReplicasUnavailable Progressing=Unknown/DeploymentPaused")
		c.edit(paused(false))
		c.settle()
		equal(t, "replica sets when resumed", c.shape(), "1:web:1:2")
		c.edit(paused(true))
		c.edit(image("2"), replicas(4))
		c.settle()
		equal(t, "scaled but not rolled out while paused", c.shape(), "1:web:1:4")
		c.edit(paused(false))
		c.settle()
		equal(t, "rolled out when resumed", c.shape(), "1:web:1:0 2:web:2:4")
		equal(t, "conditions", c.conditions(),
			"Available=True/MinimumReplicasAvailable Progressing=True/NewReplicaSetAvailable")
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/deployment/deployment_test.go, TestFailedDeployment
func TestStuckRolloutTimesOutAndRecovers(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create(4, func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](30) })
		c.settle()
		c.edit(image("bad"))
		c.pass(20 * time.Second)
		equal(t, "replica sets", c.shape(), "1:web:1:3 2:web:bad:2")
		equal(t, "conditions before the deadline", c.conditions(),
			"Available=True/MinimumReplicasAvailable Progressing=True/ReplicaSetUpdated")
		c.pass(20 * time.Second)
		equal(t, "conditions after it", c.conditions(),
			"Available=True/MinimumReplicasAvailable Progressing=False/ProgressDeadlineExceeded")
		c.edit(image("1"))
		c.settle()
		equal(t, "replica sets after going back", c.shape(), "2:web:bad:0 3:web:1:4")
		equal(t, "conditions after going back", c.conditions(),
			"Available=True/MinimumReplicasAvailable Progressing=True/NewReplicaSetAvailable")
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/deployment/deployment_test.go,
// TestRollingUpdateAndProportionalScalingForDeployment... and test/e2e/apps/deployment.go,
// testProportionalScalingDeployment
func TestScalingAStuckRolloutIsProportional(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create(10, rolling(3, 2))
		c.settle()
		c.edit(image("bad"))
		c.settle()
		equal(t, "stuck", c.shape(), "1:web:1:8 2:web:bad:5")
		c.edit(replicas(30))
		c.settle()
		equal(t, "scaled", c.shape(), "1:web:1:20 2:web:bad:13")
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rollback.go, rollback
func TestRollbackAnnotation(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create(1, annotated("cause", "first"))
		c.settle()
		c.edit(image("2"), annotated("cause", "second"))
		c.settle()
		c.edit(annotated(appsv1.DeprecatedRollbackTo, "1"))
		c.settle()
		equal(t, "replica sets", c.shape(), "2:web:2:0 3:web:1:1")
		d := c.web()
		equal(t, "annotations", d.Annotations, map[string]string{replicasets.RevisionAnnotation: "3", "cause": "first"})
		equal(t, "template labels", d.Spec.Template.Labels, map[string]string{"app": "web"})
		c.edit(annotated(appsv1.DeprecatedRollbackTo, "7"))
		c.settle()
		c.edit(annotated(appsv1.DeprecatedRollbackTo, "3"))
		c.settle()
		var rollbacks []string
		for _, e := range c.events() {
			if strings.Contains(e, "Rollback") {
				rollbacks = append(rollbacks, e)
			}
		}
		equal(t, "events", rollbacks, []string{
			`Normal DeploymentRollback Rolled back deployment "web" to revision 1`,
			`Warning DeploymentRollbackRevisionNotFound Unable to find the revision to rollback to.`,
			`Warning DeploymentRollbackTemplateUnchanged The rollback revision contains the same template as current deployment "web"`,
		})
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, cleanupDeployment
func TestHistoryIsCutToItsLimit(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create(1, func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = ptr.To[int32](1) })
		c.settle()
		for _, tag := range []string{"2", "3", "4"} {
			c.edit(image(tag))
			c.settle()
		}
		equal(t, "replica sets", c.shape(), "3:web:3:0 4:web:4:1")
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/deployment/deployment_test.go, TestDeploymentHashCollision
func TestHashCollisionGetsAnotherName(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		d := c.create(1)
		c.settle()
		// Somebody takes the name that the next ReplicaSet would get.
		taken := c.sets()[0].DeepCopy()
		next := d.DeepCopy()
		image("2")(next)
		taken.ObjectMeta = metav1.ObjectMeta{
			Name:   "web-" + replicasets.ComputeHash(&next.Spec.Template, nil),
			Labels: map[string]string{"app": "other"},
		}
		taken.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
		taken.Spec.Template.Labels = map[string]string{"app": "other"}
		taken.Spec.Replicas = ptr.To[int32](0)
		_, err := c.client.AppsV1().ReplicaSets("default").Create(c.t.Context(), taken, metav1.CreateOptions{})
		c.must(err)

		c.edit(image("2"))
		c.settle()
		equal(t, "collisions", c.web().Status.CollisionCount, ptr.To[int32](1))
		want := "web-" + replicasets.ComputeHash(&next.Spec.Template, ptr.To[int32](1))
		rs, err := c.client.AppsV1().ReplicaSets("default").Get(c.t.Context(), want, metav1.GetOptions{})
		c.must(err)
		equal(t, "size", *rs.Spec.Replicas, 1)
		equal(t, "counts", c.counts(), "replicas=1 updated=1 ready=1 available=1 unavailable=0")
	})
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/deployment/deployment_test.go, TestOverlappingDeployments,
// TestReplicaSetOrphaningAndAdoptionWhenLabelsChange
func TestOrphanedAndAdopted(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		d := c.create(2)
		c.settle()
		first := c.sets()[0]
		c.must(c.patchSet(first.Name, `{"metadata":{"labels":{"app":"stranger"}}}`))
		c.settle()
		released, err := c.client.AppsV1().ReplicaSets("default").Get(c.t.Context(), first.Name, metav1.GetOptions{})
		c.must(err)
		equal(t, "owners of the released", len(released.OwnerReferences), 0)
		// Its name is taken while it is a stranger: the Deployment gets a ReplicaSet of another name.
		equal(t, "collisions", c.web().Status.CollisionCount, ptr.To[int32](1))

		c.must(c.patchSet(first.Name, `{"metadata":{"labels":{"app":"web"}}}`))
		c.settle()
		adopted, err := c.client.AppsV1().ReplicaSets("default").Get(c.t.Context(), first.Name, metav1.GetOptions{})
		c.must(err)
		equal(t, "owned again", metav1.IsControlledBy(adopted, d), true)
		// Both have the template. The older is the new one; the other is old, and scaled down.
		equal(t, "size of the adopted", *adopted.Spec.Replicas, 2)
		equal(t, "counts", c.counts(), "replicas=2 updated=2 ready=2 available=2 unavailable=0")
	})
}

func (c *cluster) patchSet(name, patch string) error {
	_, err := c.client.AppsV1().ReplicaSets("default").Patch(c.t.Context(), name, types.StrategicMergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	return err
}

// No write when nothing changes: neither while time passes nor after a restart; and none that fails with a conflict on
// the way. The latter sets it apart from kube-controller-manager.
func TestWritesOnlyWhatChanges(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create(5)
		c.settle()
		c.edit(image("2"))
		c.settle()
		c.edit(paused(true))
		c.edit(paused(false))
		c.settle()
		for _, e := range c.writes() {
			if e.Code >= http.StatusBadRequest {
				t.Errorf("failed: %s", e)
			}
		}
		before := len(c.writes())
		c.pass(time.Hour)
		equal(t, "writes in an idle hour", len(c.writes())-before, 0)
		c.stop()
		c.start()
		c.settle()
		equal(t, "writes of a restart", len(c.writes())-before, 0)
	})
}

// A controller that is killed in the middle of anything carries on where it was.
func TestRestartsInTheMiddle(t *testing.T) {
	run(t, localapi.Options{}, func(c *cluster) {
		c.create(6)
		c.settle()
		stop := c.watchLimits(8, 5)
		for _, tag := range []string{"2", "3", "4"} {
			c.edit(image(tag))
			for range 4 {
				c.pass(700 * time.Millisecond)
				c.stop()
				c.start()
			}
		}
		c.settle()
		stop()
		equal(t, "replica sets", c.shape(), "1:web:1:0 2:web:2:0 3:web:3:0 4:web:4:6")
		equal(t, "counts", c.counts(), "replicas=6 updated=6 ready=6 available=6 unavailable=0")
	})
}
