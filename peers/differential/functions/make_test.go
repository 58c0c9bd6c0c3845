package functions

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// fuzz calls check with a source of chance for each seed.
func fuzz(f *testing.F, check func(t *testing.T, r maker)) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { check(t, maker{rand.New(rand.NewPCG(seed, 7))}) })
}

// maker makes objects by chance.
type maker struct{ *rand.Rand }

func (r maker) maybe() bool { return r.IntN(2) == 0 }

func pick[T any](r maker, values ...T) T { return values[r.IntN(len(values))] }

func (r maker) word() string { return pick(r, "a", "b", "web", "http", "metrics", "x-y", "ü", "") }

func (r maker) words() map[string]string {
	if r.IntN(3) == 0 {
		return nil
	}
	m := map[string]string{}
	for range r.IntN(4) {
		m[r.word()] = r.word()
	}
	return m
}

// template has fields of every shape: pointers, maps, lists, quantities, times of nothing.
func (r maker) template() corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: r.words(), Annotations: r.words()}}
	for range 1 + r.IntN(3) {
		t.Spec.Containers = append(t.Spec.Containers, r.container())
	}
	if r.maybe() {
		t.Spec.InitContainers = []corev1.Container{r.container()}
		t.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	}
	if r.maybe() {
		t.Spec.TerminationGracePeriodSeconds = ptr.To(r.Int64N(100))
		t.Spec.NodeSelector = r.words()
		t.Spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsUser:    ptr.To(r.Int64N(1000)),
			RunAsNonRoot: ptr.To(r.maybe()),
		}
	}
	if r.maybe() {
		t.Spec.Volumes = []corev1.Volume{{
			Name: r.word(),
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: r.word()}, DefaultMode: ptr.To(r.Int32N(511)),
			}},
		}}
		t.Spec.Tolerations = []corev1.Toleration{
			{Key: r.word(), Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To(r.Int64N(300))},
		}
	}
	return t
}

func (r maker) container() corev1.Container {
	c := corev1.Container{
		Name: r.word(), Image: r.word() + ":" + strconv.Itoa(r.IntN(9)),
		Args: []string{r.word(), r.word()},
	}
	if r.maybe() {
		c.Env = []corev1.EnvVar{
			{Name: r.word(), Value: r.word()},
			{
				Name:      r.word(),
				ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}},
			},
		}
		c.Ports = []corev1.ContainerPort{{Name: r.word(), ContainerPort: r.Int32N(9999), Protocol: corev1.ProtocolTCP}}
	}
	if r.maybe() {
		c.Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(r.Int64N(4000), resource.DecimalSI),
		}
		c.LivenessProbe = &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(r.Int32N(9000))},
			},
		}
	}
	return c
}

// fencepost is a number of pods, a percentage, nothing, or nonsense.
func (r maker) fencepost() *intstr.IntOrString {
	switch r.IntN(8) {
	case 0:
		return nil
	case 1:
		return ptr.To(intstr.FromString(r.word()))
	case 2, 3, 4:
		return ptr.To(intstr.FromInt32(r.Int32N(12)))
	}
	return ptr.To(intstr.FromString(strconv.Itoa(r.IntN(120)) + "%"))
}

// deployment is valid, and has ReplicaSets of up to five templates, the newest of which may be its own.
func (r maker) deployment() (*appsv1.Deployment, []*appsv1.ReplicaSet) {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "default", UID: "d", Generation: 3,
			Annotations: r.words(),
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(r.Int32N(20)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: r.template(), Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		},
	}
	d.Spec.Template.Labels = labels
	if r.IntN(4) > 0 {
		d.Spec.Strategy = appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge:       cmp.Or(r.fencepost(), ptr.To(intstr.FromString("25%"))),
				MaxUnavailable: cmp.Or(r.fencepost(), ptr.To(intstr.FromString("25%"))),
			},
		}
	}
	if r.maybe() {
		d.Status.CollisionCount = ptr.To(r.Int32())
	}
	var sets []*appsv1.ReplicaSet
	for i := range r.IntN(5) {
		template := r.template()
		template.Labels = map[string]string{"app": "web", "i": strconv.Itoa(i)}
		sets = append(sets, r.replicaSet(d, i, template))
	}
	if r.maybe() {
		sets = append(sets, r.replicaSet(d, 5, *d.Spec.Template.DeepCopy()))
	}
	return d, sets
}

func (r maker) replicaSet(d *appsv1.Deployment, i int, template corev1.PodTemplateSpec) *appsv1.ReplicaSet {
	n := r.Int32N(10)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%d", i), Namespace: "default", UID: types.UID(fmt.Sprintf("rs-%d", i)),
			CreationTimestamp: metav1.NewTime(time.Unix(int64(1000+i), 0)), Annotations: r.words(),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment")),
			},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &n, Template: template},
		Status: appsv1.ReplicaSetStatus{
			Replicas: n, ReadyReplicas: n, AvailableReplicas: r.Int32N(n + 1),
			TerminatingReplicas: ptr.To(r.Int32N(2)),
		},
	}
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	rs.Annotations["deployment.kubernetes.io/revision"] = strconv.Itoa(i + 1)
	if r.IntN(5) > 0 {
		rs.Annotations["deployment.kubernetes.io/desired-replicas"] = strconv.Itoa(r.IntN(20))
		rs.Annotations["deployment.kubernetes.io/max-replicas"] = strconv.Itoa(r.IntN(24))
	}
	return rs
}

// pods are those of one ReplicaSet, as different as pods can be.
func (r maker) pods(n int, now time.Time) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprintf("%08x", r.Uint32())),
				CreationTimestamp: r.ago(now),
			},
			Spec:   corev1.PodSpec{NodeName: pick(r, "", "n1", "n2"), Containers: []corev1.Container{{Name: "c"}}},
			Status: corev1.PodStatus{Phase: pick(r, corev1.PodPending, corev1.PodRunning, corev1.PodUnknown)},
		}
		if r.maybe() {
			p.Annotations = map[string]string{
				"controller.kubernetes.io/pod-deletion-cost": pick(r, "-1", "0", "1", "+1", "01", "x", "2147483648"),
			}
		}
		if r.IntN(3) > 0 {
			p.Status.Conditions = []corev1.PodCondition{
				{
					Type: corev1.PodReady, Status: pick(r, corev1.ConditionTrue, corev1.ConditionFalse),
					LastTransitionTime: r.ago(now),
				},
			}
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: r.Int32N(2)}}
		all = append(all, p)
	}
	return all
}

func (r maker) ago(now time.Time) metav1.Time {
	if r.IntN(8) == 0 {
		return metav1.Time{}
	}
	return metav1.NewTime(now.Add(-time.Second << r.IntN(6)))
}
