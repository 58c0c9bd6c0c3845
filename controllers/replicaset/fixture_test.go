package replicaset

import (
	"fmt"
	"iter"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/informer"
)

// epoch is "now" in tests that do not run in a bubble.
var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

type setOption func(*appsv1.ReplicaSet)

// newSet returns the ReplicaSet ns/web with that many replicas, of pods labelled app=web.
func newSet(replicas int32, options ...setOption) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", UID: "web-uid", Generation: 1,
			ResourceVersion: "1",
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
			},
		},
	}
	for _, o := range options {
		o(set)
	}
	return set
}

func minReady(seconds int32) setOption {
	return func(s *appsv1.ReplicaSet) { s.Spec.MinReadySeconds = seconds }
}

func setDeleting(s *appsv1.ReplicaSet) { s.DeletionTimestamp = &metav1.Time{Time: epoch} }

func withStatus(status appsv1.ReplicaSetStatus) setOption {
	return func(s *appsv1.ReplicaSet) { s.Status = status }
}

type podOption func(*corev1.Pod)

// newPod returns a pod that runs on node-1, is ready, matches newSet's selector, and has no owner.
func newPod(name string, options ...podOption) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "1",
			Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.Time{Time: epoch.Add(-time.Hour)},
		},
		Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{
				Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.Time{Time: epoch.Add(-time.Hour)},
			},
		}},
	}
	for _, o := range options {
		o(pod)
	}
	return pod
}

func ownedBy(set *appsv1.ReplicaSet) podOption {
	return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, kind)} }
}

func inPhase(phase corev1.PodPhase) podOption {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func notReady(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func readySince(t time.Time) podOption {
	return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: t} }
}

func deleting(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: epoch} }

func labelled(kv ...string) podOption {
	return func(p *corev1.Pod) {
		p.Labels = map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			p.Labels[kv[i]] = kv[i+1]
		}
	}
}

// numbered returns n pods p000, p001, … made with the same options.
func numbered(n int, options ...podOption) []*corev1.Pod {
	list := make([]*corev1.Pod, n)
	for i := range list {
		list[i] = newPod(fmt.Sprintf("p%03d", i), options...)
	}
	return list
}

func namesOf(list []*corev1.Pod) []string {
	var names []string
	for _, pod := range list {
		names = append(names, pod.Name)
	}
	return names
}

// cache is an informer's cache filled by hand. It only serves reads.
type cache[T informer.Object] struct {
	informer.Informer[T]
	objects   map[string]T
	indexes   map[string]informer.IndexFunc[T]
	watermark string
}

func (c *cache[T]) History(string) int64 { return 0 }

func newCache[T informer.Object](objects ...T) *cache[T] {
	c := &cache[T]{objects: make(map[string]T), indexes: make(map[string]informer.IndexFunc[T]), watermark: "1"}
	for _, obj := range objects {
		c.put(obj)
	}
	return c
}

func (c *cache[T]) put(obj T)               { c.objects[informer.Key(obj)] = obj }
func (c *cache[T]) remove(obj T)            { delete(c.objects, informer.Key(obj)) }
func (c *cache[T]) ResourceVersion() string { return c.watermark }
func (c *cache[T]) NamespaceResourceVersion(string) string {
	return c.watermark
}
func (c *cache[T]) All() iter.Seq[T]           { return slices.Values(c.List("", nil)) }
func (c *cache[T]) Get(ns, n string) (T, bool) { obj, ok := c.objects[ns+"/"+n]; return obj, ok }

func (c *cache[T]) AddIndex(name string, f informer.IndexFunc[T]) error {
	if c.indexes[name] != nil {
		return informer.ErrIndexExists
	}
	c.indexes[name] = f
	return nil
}

func (c *cache[T]) List(namespace string, selector labels.Selector) (list []T) {
	for _, obj := range c.objects { // in no order, as promised
		if (namespace == "" || obj.GetNamespace() == namespace) &&
			(selector == nil || selector.Matches(labels.Set(obj.GetLabels()))) {
			list = append(list, obj)
		}
	}
	return list
}

func (c *cache[T]) ByIndex(name, value string) (list []T, err error) {
	f := c.indexes[name]
	if f == nil {
		return nil, informer.ErrNoIndex
	}
	for _, obj := range c.objects {
		if values, _ := f(obj); slices.Contains(values, value) {
			list = append(list, obj)
		}
	}
	return list, nil
}
