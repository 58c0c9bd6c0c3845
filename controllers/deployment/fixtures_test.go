package deployment

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/rollout"
	"github.com/flyball-dev/flyball/informer"
)

// epoch is the time of all syncs in these tests; everything observed is older.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(epoch.Add(-d)) }

type deploymentChange func(*appsv1.Deployment)

// web is the Deployment default/web of image v2, as the API server defaults it, whose status says nothing yet.
func web(replicas int32, changes ...deploymentChange) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", UID: "web-uid", Generation: 1, ResourceVersion: "100",
			CreationTimestamp: ago(24 * time.Hour),
		},
		Spec: appsv1.DeploymentSpec{
			Replicas:                ptr.To(replicas),
			Selector:                &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:                template("v2"),
			RevisionHistoryLimit:    ptr.To[int32](10),
			ProgressDeadlineSeconds: ptr.To[int32](600),
		},
	}
	rolling("25%", "25%")(d)
	for _, change := range changes {
		change(d)
	}
	return d
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

func rolling(surge, unavailable string) deploymentChange {
	return func(d *appsv1.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: ptr.To(intstr.Parse(surge)), MaxUnavailable: ptr.To(intstr.Parse(unavailable)),
			},
		}
	}
}

func recreate(d *appsv1.Deployment) {
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

func paused(d *appsv1.Deployment) { d.Spec.Paused = true }

func deleted(d *appsv1.Deployment) { d.DeletionTimestamp = ptr.To(ago(time.Second)) }

func keeping(revisions int32) deploymentChange {
	return func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = ptr.To(revisions) }
}

func noDeadline(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = nil }

func deadlineOf(seconds int32) deploymentChange {
	return func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To(seconds) }
}

// annotate sets one annotation.
func annotate(key, value string) deploymentChange {
	return func(d *appsv1.Deployment) { metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value) }
}

// progressing gives the condition Progressing that is that old.
func progressing(status corev1.ConditionStatus, reason string, age time.Duration) deploymentChange {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: "as it was",
			LastUpdateTime: ago(age), LastTransitionTime: ago(age),
		})
	}
}

type setChange func(*appsv1.ReplicaSet)

// set is the ReplicaSet web-<image> of revision n, n minutes younger than the Deployment, of the given size. Its pods
// are all there and available, and it was last scaled when the Deployment had the size and limits it has now.
func set(d *appsv1.Deployment, n int64, image string, size int32, changes ...setChange) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-" + image, UID: types.UID("uid-" + image), Generation: 1,
			ResourceVersion:   fmt.Sprint(n),
			CreationTimestamp: metav1.NewTime(d.CreationTimestamp.Add(time.Duration(n) * time.Minute)),
			OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(d, kind)},
			Annotations:       map[string]string{replicasets.RevisionAnnotation: fmt.Sprint(n)},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(size), Template: template(image)},
		Status: appsv1.ReplicaSetStatus{
			Replicas: size, ReadyReplicas: size, AvailableReplicas: size, ObservedGeneration: 1,
			TerminatingReplicas: ptr.To[int32](0),
		},
	}
	rs.Spec.Template.Labels = replicasets.WithHash(rs.Spec.Template.Labels, "hash-"+image)
	rs.Labels = maps.Clone(rs.Spec.Template.Labels)
	l, err := rollout.LimitsOf(d)
	if err != nil {
		panic(err)
	}
	maps.Copy(rs.Annotations, replicasets.ScaleAnnotations(l.Replicas, l.MaxReplicas()))
	for _, change := range changes {
		change(rs)
	}
	return rs
}

// availableOf says how many of its pods are ready and available.
func availableOf(n int32) setChange {
	return func(rs *appsv1.ReplicaSet) { rs.Status.ReadyReplicas, rs.Status.AvailableReplicas = n, n }
}

// counting says how many pods its controller counts; none of them ready.
func counting(n int32) setChange {
	return func(rs *appsv1.ReplicaSet) { rs.Status = appsv1.ReplicaSetStatus{Replicas: n, ObservedGeneration: 1} }
}

// scaledFor gives the annotations of another size of the Deployment.
func scaledFor(replicas, maxReplicas string) setChange {
	return func(rs *appsv1.ReplicaSet) {
		rs.Annotations[replicasets.DesiredReplicasAnnotation] = replicas
		rs.Annotations[replicasets.MaxReplicasAnnotation] = maxReplicas
	}
}

func annotateSet(key, value string) setChange {
	return func(rs *appsv1.ReplicaSet) { rs.Annotations[key] = value }
}

// settled gives d the status and the revision it has when nothing is left to do for it and these ReplicaSets.
func settled(t *testing.T, d *appsv1.Deployment, rss ...*appsv1.ReplicaSet) *appsv1.Deployment {
	t.Helper()
	d = d.DeepCopy()
	for range 10 {
		plan := mustPlan(t, d, rss...)
		if len(plan.steps) == 0 {
			return d
		}
		for _, s := range plan.steps {
			u, ok := s.(updateStatus)
			if !ok {
				t.Fatalf("there is more to do than to write the status:\n%s", plan)
			}
			d.Status = u.Status
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, replicasets.RevisionAnnotation, u.Revision)
		}
	}
	t.Fatal("the status never settles")
	return nil
}

func mustPlan(t *testing.T, d *appsv1.Deployment, rss ...*appsv1.ReplicaSet) Changes {
	t.Helper()
	return planOf(t, Observed{Deployment: d, ReplicaSets: rss, Now: epoch})
}

// planOf plans, and fails the test if that changed what was observed.
func planOf(t *testing.T, o Observed) Changes {
	t.Helper()
	before := Observed{Deployment: o.Deployment.DeepCopy(), Pods: o.Pods, Now: o.Now}
	for _, rs := range o.ReplicaSets {
		before.ReplicaSets = append(before.ReplicaSets, rs.DeepCopy())
	}
	plan, err := Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, o); diff != "" {
		t.Errorf("the plan changed what was observed:\n%s", diff)
	}
	return plan
}

// wantSteps compares a plan with its expected text, line by line. An expected line may be the beginning of the real
// one, and the status lines of the plan are left out if none is expected.
func wantSteps(t *testing.T, plan Changes, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(plan.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "status ") && !strings.Contains(strings.Join(want, "\n"), "status ") {
			continue
		}
		if n := len(got); n < len(want) && strings.HasPrefix(line, want[n]) {
			line = want[n]
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// cacheAt is a cache that holds these objects and has come to this version. What it is not asked for it does not have.
type cacheAt[T informer.Object] struct {
	informer.Informer[T]
	version string
	objects []T
}

func (c cacheAt[T]) NamespaceResourceVersion(string) string { return c.version }

func (c cacheAt[T]) History(string) int64 { return 0 }

func (c cacheAt[T]) Get(namespace, name string) (obj T, ok bool) {
	for _, o := range c.objects {
		if o.GetNamespace() == namespace && o.GetName() == name {
			return o, true
		}
	}
	return obj, false
}

func at[T metav1.Object](obj T, version string) T {
	obj.SetResourceVersion(version)
	return obj
}
