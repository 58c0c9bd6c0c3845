package kubelet

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// podEvents queues pods and maintains their records.
func (k *fake) podEvents() handler.EventHandler[*corev1.Pod, reconcile.Request] {
	return handler.EventHandler[*corev1.Pod, reconcile.Request]{
		OnAdd: func(_ context.Context, pod *corev1.Pod, _ bool, q reconcile.Enqueuer[reconcile.Request]) {
			k.records.adopt(pod)
			q.Add(reconcile.RequestFor(pod))
		},
		OnUpdate: func(_ context.Context, old, pod *corev1.Pod, q reconcile.Enqueuer[reconcile.Request]) {
			k.records.adopt(pod)
			q.Add(reconcile.RequestFor(pod))
			if terminal(pod) && !terminal(old) {
				for _, request := range k.records.waiting() {
					q.Add(request)
				}
			}
		},
		OnDelete: func(_ context.Context, d informer.Deleted[*corev1.Pod], q reconcile.Enqueuer[reconcile.Request]) {
			for _, request := range k.records.forget(d.Object) {
				q.Add(request)
			}
		},
	}
}

// reconcilePod moves a pod one step forward.
func (k *fake) reconcilePod(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	pod, found := k.pods.Get(key.Namespace, key.Name)
	if !found || k.records.overtaken(pod) {
		return reconcile.Result{}, nil // the event of the newer state will queue the pod again
	}
	defer k.settle(pod)
	if schedulable(pod) && !k.options.NoScheduler {
		return reconcile.Result{}, k.schedule(ctx, pod)
	}
	i, ours := k.index[pod.Spec.NodeName]
	switch {
	case !ours:
		return reconcile.Result{}, nil
	case pod.DeletionTimestamp != nil:
		return k.stop(ctx, pod, nodeIP(i))
	case terminal(pod):
		return reconcile.Result{}, nil
	default:
		return k.report(ctx, pod, nodeIP(i))
	}
}

// settle forgets a pod whose end was reported while it was worked on. Otherwise what was recorded since then would stay
// in the records for ever.
func (k *fake) settle(pod *corev1.Pod) {
	if now, found := k.pods.Get(pod.Namespace, pod.Name); found && now.UID == pod.UID {
		return // an end that has come meanwhile is still to be reported
	}
	for _, request := range k.records.forget(pod) {
		k.podLoop.Enqueue(request)
	}
}

// schedule binds a pod to a node, or reports that no node fits.
func (k *fake) schedule(ctx context.Context, pod *corev1.Pod) error {
	var candidates []candidate
	for i := range k.options.Nodes {
		if node, found := k.nodes.Get("", nodeName(i)); found {
			candidates = append(candidates, candidate{node: node, capacity: k.options.PodsPerNode})
		}
	}
	node, before, reason := k.records.place(pod, candidates)
	if node == "" {
		return k.reportUnschedulable(ctx, pod, reason)
	}
	if before {
		return nil // already bound; the event will queue it again
	}
	err := k.client.SubResource("binding").Create(ctx, pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
	if err != nil {
		k.records.unplace(pod.UID)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // deleted, or bound by another scheduler; the event will queue it again
		}
		return fmt.Errorf("bind pod to %s: %w", node, err)
	}
	k.counts.bound.Add(1)
	k.counts.writes.Add(1)
	return nil
}

// reportUnschedulable sets the condition that a scheduler sets, and records its event if the reason is a new one.
func (k *fake) reportUnschedulable(ctx context.Context, pod *corev1.Pod, reason string) error {
	status := *pod.Status.DeepCopy()
	c := condition(corev1.PodScheduled, false, corev1.PodReasonUnschedulable, reason)
	c.LastTransitionTime, c.ObservedGeneration = metav1.Now().Rfc3339Copy(), pod.Generation
	i := slices.IndexFunc(status.Conditions, func(old corev1.PodCondition) bool { return old.Type == c.Type })
	if i < 0 {
		i, status.Conditions = len(status.Conditions), append(status.Conditions, corev1.PodCondition{})
	}
	old := status.Conditions[i]
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	if k.options.Recorder != nil && old.Message != reason {
		k.options.Recorder.Event(pod, corev1.EventTypeWarning, "FailedScheduling", reason)
	}
	status.Conditions[i] = c
	return k.writeStatus(ctx, pod, status)
}

// report brings a bound pod's status up to date.
func (k *fake) report(ctx context.Context, pod *corev1.Pod, hostIP string) (reconcile.Result, error) {
	s := situation{
		stage: reached(pod), hostIP: hostIP, now: metav1.Now().Rfc3339Copy(),
		message: k.options.Message,
	}
	var err error
	if s.ending, err = endingOf(pod); err != nil {
		s.problem = err.Error()
	}
	wait := k.advance(pod, &s.stage)
	if next := k.clock(pod, &s); next > 0 && (wait == 0 || next < wait) {
		wait = next
	}
	if s.stage != creating {
		ips, err := k.addresses(pod, hostIP)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("assign pod IP: %w", err)
		}
		s.podIPs = ips
	}
	status := wantedStatus(pod, s)
	if err := k.writeStatus(ctx, pod, status); err != nil {
		return reconcile.Result{}, err
	}
	if status.Phase == corev1.PodRunning && pod.Status.Phase != corev1.PodRunning {
		k.counts.started.Add(1)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// advance moves a pod to the next stage if its time in the present one is over. Otherwise it returns the time that is
// left.
func (k *fake) advance(pod *corev1.Pod, at *stage) time.Duration {
	var name string
	switch {
	case *at == creating:
		name = "start"
	case *at == pulling && pullFailureOf(pod) != "":
		name = "pull"
	default:
		return 0
	}
	if left := k.remaining(pod, name, k.delay(pod, name)); left > 0 {
		return left
	}
	*at++
	return 0
}

// addresses returns the pod's addresses, and reserves them if it has none yet.
func (k *fake) addresses(pod *corev1.Pod, hostIP string) ([]string, error) {
	if pod.Spec.HostNetwork {
		return []string{hostIP}, nil
	}
	if len(pod.Status.PodIPs) == 0 {
		return k.records.addresses(pod.UID)
	}
	var ips []string
	for _, ip := range pod.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return ips, nil
}

// writeStatus patches what differs, as the kubelet does: it requires the UID, but no resource version.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/util/pod/pod.go, PatchPodStatus
func (k *fake) writeStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	if equality.Semantic.DeepEqual(pod.Status, status) {
		return nil
	}
	body, err := statusPatch(pod, status)
	if err != nil {
		return fmt.Errorf("patch status of pod: %w", err)
	}
	patched := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err = k.client.Status().Patch(ctx, patched, client.RawPatch(types.StrategicMergePatchType, body))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or replaced by another pod; the event will queue it again
	}
	if err != nil {
		return fmt.Errorf("patch status of pod: %w", err)
	}
	k.counts.writes.Add(1)
	k.records.wrote(pod.UID, patched.ResourceVersion)
	return nil
}

// stop ends a pod that is being deleted: its containers take some time to stop, and then the pod is removed. If a
// finalizer holds the pod back, its status shows how it ended, and the removal is requested only once.
func (k *fake) stop(ctx context.Context, pod *corev1.Pod, hostIP string) (reconcile.Result, error) {
	if k.records.finished(pod.UID) || (pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0) {
		return reconcile.Result{}, nil
	}
	takes := max(k.delay(pod, "stop"), k.options.Stop)
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		takes = min(takes, time.Duration(*grace)*time.Second)
	}
	if remaining := k.remaining(pod, "stop", takes); remaining > 0 {
		return reconcile.Result{RequeueAfter: remaining}, nil
	}
	if len(pod.Finalizers) > 0 && !terminal(pod) {
		s := situation{hostIP: hostIP, now: metav1.Now().Rfc3339Copy(), message: k.options.Message, killed: true}
		if err := k.writeStatus(ctx, pod, wantedStatus(pod, s)); err != nil {
			return reconcile.Result{}, err
		}
	}
	err := k.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.OnlyThis(pod))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return reconcile.Result{}, fmt.Errorf("delete pod: %w", err)
	}
	k.records.finish(pod.UID)
	if err == nil {
		k.counts.removed.Add(1)
		k.counts.writes.Add(1)
	}
	return reconcile.Result{}, nil
}

// remaining returns the time that is left of a stage that takes takes.
func (k *fake) remaining(pod *corev1.Pod, stage string, takes time.Duration) time.Duration {
	return takes - k.records.since(pod.UID, stage, time.Now())
}

// delay returns how long a stage of the pod takes.
func (k *fake) delay(pod *corev1.Pod, stage string) time.Duration {
	if k.options.Spread <= 0 {
		return k.options.Delay
	}
	h := fnv.New64a()
	// Writing to a hash cannot fail.
	_ = binary.Write(h, binary.LittleEndian, k.options.Seed)
	_, _ = h.Write([]byte(pod.Namespace + "/" + pod.Name + "/" + stage))
	return k.options.Delay + time.Duration(h.Sum64()%uint64(k.options.Spread))
}
