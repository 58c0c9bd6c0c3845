package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

// A trimmed cache has everything but the managed fields, and writes from it leave those on the server alone.
func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{Informers: informer.FactoryOptions{Transform: controllers.Trim}})
		services, err := informer.For[*corev1.Service](m.Informers())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		api := kubernetes.NewForConfigOrDie(m.GetConfig()).CoreV1().Services("default")
		made, err := api.Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{FieldManager: "author"})
		if err != nil || len(made.ManagedFields) != 1 {
			t.Fatalf("managed fields %v, %v", made.ManagedFields, err)
		}
		synctest.Wait()
		cached, found := services.Get("default", "web")
		if !found || cached.ManagedFields != nil {
			t.Fatalf("found %v, managed fields %v", found, cached.GetManagedFields())
		}
		untrimmed := made.DeepCopy()
		untrimmed.ManagedFields = nil
		want, _ := json.Marshal(untrimmed)
		if got, _ := json.Marshal(cached); string(got) != string(want) {
			t.Errorf("cached:\n%s\nwant:\n%s", got, want)
		}
		written := cached.DeepCopy()
		written.Labels = map[string]string{"a": "b"}
		updated, err := api.Update(ctx, written, metav1.UpdateOptions{FieldManager: "editor"})
		if err != nil || len(updated.ManagedFields) != 2 || updated.ManagedFields[0].Manager != "author" {
			t.Errorf("after the update: %v, %v", updated.ManagedFields, err)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Everything of a Pod that a controller reads is kept, in a new Pod, so that the rest can be freed.
func TestTrimPod(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	always := corev1.ContainerRestartPolicyAlways
	owners := []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: ptr.To(true)},
	}
	ports := []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
	whole := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-x", GenerateName: "web-", Namespace: "default", UID: "u", ResourceVersion: "7", Generation: 1,
			CreationTimestamp: at, DeletionTimestamp: &at, DeletionGracePeriodSeconds: ptr.To[int64](30),
			Finalizers: []string{"a/b"},
			Labels:     map[string]string{"app": "web"}, OwnerReferences: owners,
			Annotations:   map[string]string{corev1.PodDeletionCost: "3", "note": "long"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", Hostname: "h", Subdomain: "s", ServiceAccountName: "default",
			Volumes: []corev1.Volume{{Name: "v"}},
			Containers: []corev1.Container{
				{Name: "silent", Image: "i"},
				{Name: "c", Image: "i", Ports: ports, Env: []corev1.EnvVar{{Name: "E"}}},
			},
			InitContainers: []corev1.Container{
				{Name: "once", Image: "i"},
				{Name: "side", Image: "i", RestartPolicy: &always},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
			HostIP: "192.0.2.1", StartTime: &at,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
				{
					Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at, LastProbeTime: at,
					Message: "m",
				},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "silent", ContainerID: "x"},
				{Name: "c", RestartCount: 2, Image: "i", ContainerID: "x"},
			},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "once"}, {Name: "side", RestartCount: 4}},
		},
	}
	got, err := controllers.Trim(whole)
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-x", Namespace: "default", UID: "u", ResourceVersion: "7", CreationTimestamp: at,
			DeletionTimestamp: &at,
			Labels:            map[string]string{"app": "web"}, OwnerReferences: owners,
			Annotations: map[string]string{corev1.PodDeletionCost: "3"},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", Hostname: "h", Subdomain: "s", Containers: []corev1.Container{{Name: "c", Ports: ports}},
			InitContainers: []corev1.Container{{Name: "side", RestartPolicy: &always}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at},
			},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "c", RestartCount: 2}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "side", RestartCount: 4}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if got == informer.Object(whole) {
		t.Error("the whole Pod is kept alive")
	}
}

// Trimming does not change which Pod is deleted first.
func TestTrimKeepsTheDeletionOrder(t *testing.T) {
	now := time.Unix(10000, 0)
	var whole, trimmed []*corev1.Pod
	for i := range 64 {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("u", i)),
				Annotations: map[string]string{"other": "x"},
			},
		}
		if i&1 > 0 {
			p.Spec.NodeName = "n"
		}
		p.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning}[i>>1&1]
		ready := corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(now.Add(-time.Duration(i) * time.Minute)),
		}
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			ready,
		}[:1+i>>2&1]
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a"}, {Name: "b", RestartCount: int32(i >> 3 & 1)}}
		p.Spec.InitContainers = []corev1.Container{
			{Name: "once"},
			{Name: "side", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
		}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{
			{Name: "once", RestartCount: int32(i)},
			{Name: "side", RestartCount: int32(i >> 4 & 1)},
		}
		if i>>5&1 > 0 {
			p.Annotations[corev1.PodDeletionCost] = "-1"
		}
		obj, err := controllers.Trim(p.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		whole, trimmed = append(whole, p), append(trimmed, obj.(*corev1.Pod))
	}
	order := func(all []*corev1.Pod) (names []string) {
		compare := replicaset.CompareForDeletion(all, now)
		for _, p := range slices.SortedFunc(slices.Values(all), compare) {
			names = append(names, p.Name)
		}
		return names
	}
	if got, want := order(trimmed), order(whole); !slices.Equal(got, want) {
		t.Errorf("trimmed:\n%v\nwant\n%v", got, want)
	}
}
