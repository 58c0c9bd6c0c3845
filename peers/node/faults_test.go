package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// leaderKilled kills the process of the leader in the middle of a rollout. Another process, of the other replica or the
// one that the kubelet starts in its place, finishes it, and no request fails.
func (w *web) leaderKilled(t *testing.T) {
	n := w.n
	leader, err := n.AwaitLeader(t.Context(), "")
	must(t, err)
	name, _, _ := strings.Cut(leader, "_")
	pod, err := n.Client.CoreV1().Pods(system).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	x := newTraffic(t, w.url)
	w.patch(t, fmt.Sprintf(`"image":%q`, Web[1]))
	begin := time.Now()
	id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
	_, err = n.Exec(t.Context(), "ctr", "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", id)
	must(t, err)
	next, err := n.AwaitLeader(t.Context(), leader)
	must(t, err)
	t.Logf("%s leads %s after %s was killed", next, time.Since(begin).Round(time.Second), leader)
	w.rolledOut(t)
	must(t, eventually(t.Context(), "the second version does not answer", x.seen(Web[1])))
	w.awaitEndpoints(t, replicas)
	x.whole(t, x.end(t))
	must(t, n.AwaitDeployment(t.Context(), system, manager)) // the kubelet has started the killed one again
}

// serverRestarted starts the API server anew in the middle of a rollout. The rollout goes on, and no request fails.
func (w *web) serverRestarted(t *testing.T) {
	x := newTraffic(t, w.url)
	w.patch(t, fmt.Sprintf(`"image":%q`, Web[0]))
	must(t, w.n.StartProgram(t.Context(), "kube-apiserver"))
	must(t, w.n.AwaitAPI(t.Context()))
	w.rolledOut(t)
	must(t, eventually(t.Context(), "the first version does not answer", x.seen(Web[0])))
	w.awaitEndpoints(t, replicas)
	x.whole(t, x.end(t))
	must(t, w.n.AwaitDeployment(t.Context(), system, manager))
}

// kubeletStopped stops the kubelet until the node counts as lost, and starts it again. Its pods leave the endpoints and
// come back, and none is replaced.
func (w *web) kubeletStopped(t *testing.T) {
	before := w.pods(t)
	must(t, w.n.StopProgram(t.Context(), "kubelet"))
	w.awaitEndpoints(t, 0)
	must(t, w.n.StartProgram(t.Context(), "kubelet"))
	must(t, w.n.AwaitReady(t.Context()))
	w.awaitEndpoints(t, replicas)
	w.rolledOut(t)
	for name := range w.pods(t) {
		if before[name] == nil {
			t.Errorf("the pod %s is new", name)
		}
	}
}

// drained evicts the pods from the only node. Their successors wait until there is a node again. One pod of the manager
// may not be evicted, so that it creates them.
func (w *web) drained(t *testing.T) {
	w.cordon(t, true)
	managers, err := w.n.Client.CoreV1().Pods(system).List(t.Context(),
		metav1.ListOptions{LabelSelector: "app=" + manager})
	must(t, err)
	if len(managers.Items) != 2 {
		t.Fatalf("the manager has %d pods, want 2", len(managers.Items))
	}
	must(t, eventually(t.Context(), "no pod of the manager may be evicted", func() error {
		return w.evict(t, &managers.Items[0])
	}))
	if err := w.evict(t, &managers.Items[1]); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the eviction of the manager's other pod: %v, want it refused", err)
	}
	before := w.pods(t)
	for _, pod := range before {
		must(t, w.evict(t, pod))
	}
	must(t, eventually(t.Context(), "there are not three new pods that wait", func() error {
		pods := w.pods(t)
		for name, pod := range pods {
			if before[name] != nil || pod.Status.Phase != corev1.PodPending || pod.Spec.NodeName != "" {
				return fmt.Errorf("%s is %s at %q", name, pod.Status.Phase, pod.Spec.NodeName)
			}
		}
		if len(pods) != replicas {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	}))
	w.awaitEndpoints(t, 0)
	w.cordon(t, false)
	w.rolledOut(t)
	w.awaitEndpoints(t, replicas)
	must(t, w.n.AwaitDeployment(t.Context(), system, manager))
}

// evict asks for an eviction, as kubectl drain does.
func (w *web) evict(t *testing.T, pod *corev1.Pod) error {
	return w.n.Client.CoreV1().Pods(pod.Namespace).EvictV1(t.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
	})
}

// cordon lets the node take new pods, or not.
func (w *web) cordon(t *testing.T, on bool) {
	t.Helper()
	_, err := w.n.Client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on), metav1.PatchOptions{})
	must(t, err)
}

// switchedOn switches kube-controller-manager's own controllers back on and removes our manager. They find nothing to
// do: no object of the Deployment changes.
func (w *web) switchedOn(t *testing.T) {
	ctx, n := t.Context(), w.n
	before := w.settled(t)
	must(t, n.SetControllers(ctx, Theirs))
	background := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	must(t, n.Client.AppsV1().Deployments(system).Delete(ctx, manager, o))
	must(t, eventually(ctx, "our manager is still there", func() error {
		pods, err := n.Client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: "app=" + manager})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("it has %d pods", len(pods.Items))
		}
		return err
	}))
	// Their controllers have seen everything when one has done something new.
	p := newWeb(t, n, "probe")
	w.unmoved(t, before)
	p.remove(t)
}
