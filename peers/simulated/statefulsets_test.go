package simulated

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// statefulSets is as much of a StatefulSet controller and of a kubelet as a scenario needs: pods are ready as soon as
// they are there, and a rolling update replaces one at a time.
type statefulSets struct {
	client.Client

	// admit changes a pod before it is created, as a webhook would.
	admit func(context.Context, *corev1.Pod) error
}

// newStatefulSets returns a part of the cluster for [simtest.Scenario.Others].
func newStatefulSets(admit func(context.Context, *corev1.Pod) error) func(*simtest.Env) (simtest.Program, error) {
	return func(e *simtest.Env) (simtest.Program, error) {
		mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{})
		if err != nil {
			return nil, err
		}
		return mgr, ctrl.NewControllerManagedBy(mgr).For(&appsv1.StatefulSet{}).Owns(&corev1.Pod{}).
			Complete(&statefulSets{mgr.GetClient(), admit})
	}
}

// Reconcile makes one change at a time, and writes the status when there is none to make.
func (s *statefulSets) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var set appsv1.StatefulSet
	if err := s.Get(ctx, r.NamespacedName, &set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	pods, err := s.pods(ctx, &set)
	if err != nil {
		return ctrl.Result{}, err
	}
	if done, err := s.scale(ctx, &set, pods); !done || err != nil {
		return ctrl.Result{}, err
	}
	if done, err := s.update(ctx, &set, pods); !done || err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, s.report(ctx, &set, pods)
}

// pods returns the pods of the set by their names.
func (s *statefulSets) pods(ctx context.Context, set *appsv1.StatefulSet) (map[string]*corev1.Pod, error) {
	var list corev1.PodList
	if err := s.List(ctx, &list, client.InNamespace(set.Namespace)); err != nil {
		return nil, err
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], set) {
			pods[list.Items[i].Name] = &list.Items[i]
		}
	}
	return pods, nil
}

// names returns the names of the pods that the set wants, in order.
func names(set *appsv1.StatefulSet) []string {
	start := int32(0)
	if set.Spec.Ordinals != nil {
		start = set.Spec.Ordinals.Start
	}
	var all []string
	for i := range *set.Spec.Replicas {
		all = append(all, set.Name+"-"+strconv.Itoa(int(start+i)))
	}
	return all
}

// partition is the number of pods, from the first, that an update leaves alone.
func partition(set *appsv1.StatefulSet) int {
	if u := set.Spec.UpdateStrategy.RollingUpdate; u != nil {
		return int(ptr.Deref(u.Partition, 0))
	}
	return 0
}

// revision stands for the template.
func revision(set *appsv1.StatefulSet) string {
	data, err := json.Marshal(set.Spec.Template)
	if err != nil {
		panic(err) // cannot fail: it came from JSON
	}
	h := fnv.New32a()
	_, _ = h.Write(data)
	return fmt.Sprintf("%s-%x", set.Name, h.Sum32())
}

// scale creates the pods that are missing and deletes those that are too many. It reports whether there were none.
func (s *statefulSets) scale(ctx context.Context, set *appsv1.StatefulSet, pods map[string]*corev1.Pod) (bool, error) {
	done, wanted := true, names(set)
	for _, name := range wanted {
		switch pod := pods[name]; {
		case pod == nil:
			if err := s.create(ctx, set, name); err != nil {
				return false, err
			}
			done = false
		case pod.DeletionTimestamp != nil:
			done = false
		case pod.Status.Phase != corev1.PodRunning:
			if err := makeReady(ctx, s, pod); err != nil {
				return false, err
			}
			done = false
		}
	}
	for name, pod := range pods {
		if !slices.Contains(wanted, name) && pod.DeletionTimestamp == nil {
			return false, client.IgnoreNotFound(s.Delete(ctx, pod))
		}
	}
	return done, nil
}

func (s *statefulSets) create(ctx context.Context, set *appsv1.StatefulSet, name string) error {
	template := set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace = name, set.Namespace
	pod.Labels[appsv1.StatefulSetRevisionLabel] = revision(set)
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")),
	}
	if err := s.admit(ctx, pod); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(s.Create(ctx, pod))
}

// update deletes the last pod that has an old template. It reports whether there was none.
func (s *statefulSets) update(ctx context.Context, set *appsv1.StatefulSet, pods map[string]*corev1.Pod) (bool, error) {
	wanted := names(set)
	for i := len(wanted) - 1; i >= partition(set); i-- {
		if pod := pods[wanted[i]]; pod.Labels[appsv1.StatefulSetRevisionLabel] != revision(set) {
			return false, client.IgnoreNotFound(s.Delete(ctx, pod))
		}
	}
	return true, nil
}

func (s *statefulSets) report(ctx context.Context, set *appsv1.StatefulSet, pods map[string]*corev1.Pod) error {
	n, updated := int32(len(pods)), int32(0)
	for _, pod := range pods {
		if pod.Labels[appsv1.StatefulSetRevisionLabel] == revision(set) {
			updated++
		}
	}
	status := appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n,
		UpdatedReplicas: updated, UpdateRevision: revision(set), CurrentRevision: set.Status.CurrentRevision,
	}
	if updated == n || status.CurrentRevision == "" {
		status.CurrentRevision = status.UpdateRevision
	}
	if status.ObservedGeneration == set.Status.ObservedGeneration && status.Replicas == set.Status.Replicas &&
		status.UpdatedReplicas == set.Status.UpdatedReplicas && status.CurrentRevision == set.Status.CurrentRevision {
		return nil
	}
	set.Status = status
	return s.Status().Update(ctx, set)
}
