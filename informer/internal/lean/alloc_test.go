package lean

import (
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sibling returns the n-th pod of a Deployment. Its name, UID, version, token volume, address and times are its own.
func sibling(n int) *corev1.Pod {
	at := metav1.Unix(int64(n), 0)
	token := fmt.Sprintf("kube-api-access-%05d", n)
	container := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "registry.example.com/" + name, Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
			},
			VolumeMounts:  []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}, {Name: token, MountPath: "/" + name}},
			LivenessProbe: &corev1.Probe{PeriodSeconds: 3},
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%05d", n), Namespace: "shop", UID: types.UID(fmt.Sprintf("uid-%05d", n)),
			ResourceVersion: fmt.Sprintf("1%05d", n), Labels: map[string]string{"app": "web"}, CreationTimestamp: at,
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "u"}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container("app"), container("proxy")},
			Volumes: []corev1.Volume{
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			},
		},
		Status: corev1.PodStatus{
			PodIP: fmt.Sprintf("10.0.0.%d", n), StartTime: &at,
			Conditions: []corev1.PodCondition{
				{Type: "Ready", Status: "True", LastTransitionTime: at},
				{Type: "Initialized", Status: "True", LastTransitionTime: at},
			},
		},
	}
}

// TestAllocationsOfAPod: once the siblings of a pod are known, decoding it allocates only what differs from them. That
// is the pod; its name, UID, resource version, address and start time, and the name of its token volume; and the lists
// that contain any of these, each in one piece: containers, the mounts of both containers, volumes and conditions. A
// pod that must not share also allocates labels, owners, environments, resources, probes and volume sources.
func TestAllocationsOfAPod(t *testing.T) {
	const siblings = 400
	var all [][]byte
	for n := range siblings {
		data, err := sibling(n).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	for share, want := range map[bool]float64{true: 1 + 5 + 1 + 5, false: 31} {
		least := math.Inf(1) // Hashes are random. With one decoder in a hundred, a part loses its place to another.
		for attempt := 0; attempt < 4 && least > want; attempt++ {
			d, n := NewDecoder(), 0
			decode := func() {
				if err := d.Unmarshal(all[n], &corev1.Pod{}, share); err != nil {
					t.Fatal(err)
				}
				n++
			}
			for range siblings / 2 {
				decode()
			}
			least = min(least, testing.AllocsPerRun(siblings/2-1, decode))
		}
		if least > want {
			t.Errorf("sharing %v: %v allocations, want %v", share, least, want)
		}
	}
}
