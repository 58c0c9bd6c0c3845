package replicasets

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// The expected hashes were computed by the function of kube-controller-manager itself, built with k8s.io/api v0.37.2.
// They change with the fields of the pod template in k8s.io/api, and only then.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, ComputeHash
func TestComputeHash(t *testing.T) {
	simple := template("v1")
	rich := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": "web", "tier": "front"},
			Annotations: map[string]string{"a": "1"},
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](30), RestartPolicy: corev1.RestartPolicyAlways,
			DNSPolicy:       corev1.DNSClusterFirst,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}, SchedulerName: "default-scheduler",
			Containers: []corev1.Container{{
				Name: "c", Image: "registry/web:1.2",
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
				}},
				ReadinessProbe: &corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{
						HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")},
					},
					PeriodSeconds: 10,
				},
			}},
		},
	}
	for _, tc := range []struct {
		name       string
		template   corev1.PodTemplateSpec
		collisions *int32
		want       string
	}{
		{"empty", corev1.PodTemplateSpec{}, nil, "54f4c57dcb"},
		{"simple", simple, nil, "59dc47d8b8"},
		{"no collision is not the same as none counted", simple, ptr.To[int32](0), "59c67bb9f6"},
		{"one collision", simple, ptr.To[int32](1), "757f46f469"},
		{"many collisions", simple, ptr.To[int32](300), "6bb848b947"},
		{"rich", rich, nil, "7fb55f8999"},
		{"rich with collisions", rich, ptr.To[int32](7), "5b8dccb568"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			equal(t, "hash", ComputeHash(&tc.template, tc.collisions), tc.want)
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, generateReplicaSetName
func TestReplicaSetName(t *testing.T) {
	equal(t, "short", Name("web", "abc"), "web-abc")
	long := strings.Repeat("n", 253)
	equal(t, "cut", Name(long, "0123456789"), long[:242]+"-0123456789")
	equal(t, "just fits", Name(long[:242], "0123456789"), long[:242]+"-0123456789")
	equal(t, "a hash that leaves no room is joined as it is", Name("web", long), "web-"+long)
}

// The label of the hash is no difference, and neither is what means the same.
func TestDifference(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*corev1.PodTemplateSpec)
		want   string
	}{
		{"an image", func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "b" }, ".spec.containers[0].image"},
		{
			"an annotation",
			func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"example.com/by": "me"} },
			".metadata.annotations",
		},
		{
			"another annotation",
			func(t *corev1.PodTemplateSpec) { t.Labels["example.com/by"] = "me" },
			".metadata.labels[example.com/by]",
		},
		{
			"a sidecar",
			func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: "s"})
			},
			".spec.containers",
		},
		{
			"a field that was set",
			func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Command = nil },
			".spec.containers[0].command",
		},
		{"nothing", func(t *corev1.PodTemplateSpec) { t.Labels = WithHash(t.Labels, "x") }, ""},
	} {
		a := template("a")
		a.Spec.Containers[0].Command = []string{"run"}
		b := *a.DeepCopy()
		tc.change(&b)
		equal(t, tc.name, Difference(&a, &b), "spec.template"+tc.want)
	}
}
