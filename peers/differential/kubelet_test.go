package differential

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// kubeletDoes is what the kubelet would do next with a pod.
type kubeletDoes string

const (
	nothing kubeletDoes = ""
	starts  kubeletDoes = "start"  // bind it, run it, make it ready
	fails   kubeletDoes = "run"    // bind it, run it, never make it ready: its image is a bad one
	ends    kubeletDoes = "finish" // remove it: it is terminating
)

// held is a finalizer of pods that the kubelet must not finish yet: they stay terminating.
const held = "flyball.test/hold"

// task is what the kubelet may do in one step: something to one of several pods that are alike.
type task struct {
	does kubeletDoes
	// set is the normalised name that the pods share, looks what else they are.
	set, looks string
	pods       []*unstructured.Unstructured // the first created first
}

// tasks are what the kubelet could do in the namespace, in an order that both sides share.
func (e *env) tasks() []task {
	var all []task
	for _, pod := range e.podsByAge() {
		does := nextOf(pod)
		if does == nothing {
			continue
		}
		e.names.learn(pod)
		set, looks := podName(pod), e.names.body(pod).String()
		i := slices.IndexFunc(all, func(t task) bool { return t.does == does && t.set == set && t.looks == looks })
		if i < 0 {
			i, all = len(all), append(all, task{does: does, set: set, looks: looks})
		}
		all[i].pods = append(all[i].pods, pod)
	}
	slices.SortFunc(all, func(a, b task) int {
		return cmp.Or(cmp.Compare(a.set, b.set), cmp.Compare(a.does, b.does), cmp.Compare(a.looks, b.looks))
	})
	return all
}

// podsByAge are the pods in the order in which they were created.
func (e *env) podsByAge() []*unstructured.Unstructured {
	pods := e.side.rec.list(e.ns, "Pod")
	slices.SortFunc(pods, func(a, b *unstructured.Unstructured) int {
		x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		return cmp.Or(x.Compare(y.Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	return pods
}

func nextOf(pod *unstructured.Unstructured) kubeletDoes {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	switch {
	case pod.GetDeletionTimestamp() != nil && slices.Contains(pod.GetFinalizers(), held):
		return nothing
	case pod.GetDeletionTimestamp() != nil:
		return ends
	case phase != string(corev1.PodPending):
		return nothing
	case strings.HasSuffix(imageOf(pod), ":bad"):
		return fails
	}
	return starts
}

func imageOf(pod *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	image, _, _ := unstructured.NestedString(containers[0].(map[string]any), "image")
	return image
}

// do carries out the task for its first n pods.
func (e *env) do(ctx context.Context, t task, n int) error {
	for _, pod := range t.pods[:min(n, len(t.pods))] {
		var err error
		switch t.does {
		case starts, fails:
			e.started++
			ip := fmt.Sprintf("10.244.%d.%d", e.started/250, e.started%250+1)
			if err = startPod(ctx, e.side.client, pod, ip); err == nil && t.does == fails {
				err = setReady(ctx, e.side.client, pod, false)
			}
		case ends:
			err = finishPod(ctx, e.side.client, pod)
		}
		if err != nil {
			return fmt.Errorf("%s pod %s: %w", t.does, pod.GetName(), err)
		}
	}
	return nil
}

// startPod binds a pod and reports it as running, and ready unless its image is a bad one.
func startPod(ctx context.Context, client kubernetes.Interface, pod *unstructured.Unstructured, ip string) error {
	ns, name := pod.GetNamespace(), pod.GetName()
	if node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); node == "" {
		err := client.CoreV1().Pods(ns).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: nodeName},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("bind: %w", err)
		}
	}
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: ptr.To(metav1.Now()),
		Conditions: conditions(!strings.HasSuffix(imageOf(pod), ":bad")),
	}
	return patchStatus(ctx, client, pod, status)
}

func conditions(ready bool) []corev1.PodCondition {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
		{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()},
	}
}

func setReady(ctx context.Context, client kubernetes.Interface, pod *unstructured.Unstructured, ready bool) error {
	return patchStatus(ctx, client, pod, corev1.PodStatus{Conditions: conditions(ready)})
}

func setPhase(ctx context.Context, client kubernetes.Interface, pod *unstructured.Unstructured,
	phase corev1.PodPhase,
) error {
	return patchStatus(ctx, client, pod, corev1.PodStatus{Phase: phase, Conditions: conditions(false)})
}

func patchStatus(ctx context.Context, client kubernetes.Interface, pod *unstructured.Unstructured,
	status corev1.PodStatus,
) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Pods(pod.GetNamespace()).Patch(ctx, pod.GetName(), types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	return err
}

// finishPod removes a terminating pod, as the kubelet does when its containers have ended.
func finishPod(ctx context.Context, client kubernetes.Interface, pod *unstructured.Unstructured) error {
	err := client.CoreV1().Pods(pod.GetNamespace()).Delete(ctx, pod.GetName(), metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: ptr.To(pod.GetUID())},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func isReady(pod *unstructured.Unstructured) bool {
	all, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	return slices.ContainsFunc(all, func(c any) bool {
		m := c.(map[string]any)
		return m["type"] == string(corev1.PodReady) && m["status"] == string(corev1.ConditionTrue)
	})
}

// observed reports whether the status is of the current spec.
func observed(o *unstructured.Unstructured) bool {
	seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return seen == o.GetGeneration()
}
