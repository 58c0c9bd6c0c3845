package differential

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// recording gathers what the watches of a namespace's ReplicaSets and pods deliver, from when it began.
type recording struct {
	mu     sync.Mutex
	events []recorded
	// upTo is, per watch, the version of the last thing it delivered. What is at or below both is complete.
	upTo map[string]int64
}

// recorded is a change of an object. The API server's versions are etcd's revisions: one order for all resources.
type recorded struct {
	version int64
	gone    bool
	set     *appsv1.ReplicaSet // one of the two
	pod     *corev1.Pod
}

func startRecording(t *testing.T, client kubernetes.Interface, namespace string) *recording {
	t.Helper()
	r := &recording{upTo: map[string]int64{}}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	o := metav1.ListOptions{ResourceVersion: "0", AllowWatchBookmarks: true}
	for name, open := range map[string]func() (watch.Interface, error){
		"replicasets": func() (watch.Interface, error) { return client.AppsV1().ReplicaSets(namespace).Watch(ctx, o) },
		"pods":        func() (watch.Interface, error) { return client.CoreV1().Pods(namespace).Watch(ctx, o) },
	} {
		w, err := open()
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for e := range w.ResultChan() {
				r.note(name, e)
			}
			if ctx.Err() == nil {
				t.Errorf("the watch of %s ended", name)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return r
}

func (r *recording) note(name string, e watch.Event) {
	obj, ok := e.Object.(metav1.Object)
	if !ok {
		return
	}
	version, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.upTo[name] = max(r.upTo[name], version)
	if e.Type == watch.Bookmark {
		return
	}
	n := recorded{version: version, gone: e.Type == watch.Deleted}
	switch o := e.Object.(type) {
	case *appsv1.ReplicaSet:
		n.set = o
	case *corev1.Pod:
		n.pod = o
	}
	r.events = append(r.events, n)
}

// take removes and returns the complete entries, in the order in which they happened. A later call returns the rest.
func (r *recording) take() []recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	complete := min(r.upTo["pods"], r.upTo["replicasets"])
	slices.SortStableFunc(r.events, func(a, b recorded) int { return int(a.version - b.version) })
	n := 0
	for n < len(r.events) && r.events[n].version <= complete {
		n++
	}
	taken := slices.Clone(r.events[:n])
	r.events = slices.Clone(r.events[n:])
	return taken
}

// history is the state after what was recorded, and its extremes.
type history struct {
	sets map[types.UID]*appsv1.ReplicaSet
	pods map[types.UID]*corev1.Pod
	// most is the most that a ReplicaSet was ever to have.
	most map[types.UID]int
	// up: all replicas have been available, from when on they count.
	up bool

	created, mostAsked, mostPods, leastAvailable int
}

// add replays events and returns the rules that they broke.
func (h *history) add(events []recorded) (problems []string) {
	if h.sets == nil {
		h.sets, h.pods, h.most = map[types.UID]*appsv1.ReplicaSet{}, map[types.UID]*corev1.Pod{}, map[types.UID]int{}
	}
	for _, e := range events {
		created := h.take(e)
		asked, active, available := h.count()
		h.mostAsked, h.mostPods = max(h.mostAsked, asked), max(h.mostPods, active)
		h.up = h.up || available == killReplicas
		if h.up {
			h.leastAvailable = min(h.leastAvailable, available)
		}
		if asked > killReplicas+killSurge {
			problems = append(problems, fmt.Sprintf("version %d: %d replicas are asked for", e.version, asked))
		}
		if h.up && available < killReplicas-killAbsent {
			problems = append(problems, fmt.Sprintf("version %d: %d pods are available", e.version, available))
		}
		if created != "" {
			problems = append(problems, fmt.Sprintf("version %d: %s", e.version, created))
		}
	}
	return problems
}

// take applies one event, and returns what is wrong with a pod that it adds.
func (h *history) take(e recorded) (problem string) {
	switch {
	case e.set != nil && e.gone:
		delete(h.sets, e.set.UID)
	case e.set != nil:
		h.sets[e.set.UID] = e.set
		h.most[e.set.UID] = max(h.most[e.set.UID], int(*e.set.Spec.Replicas))
	case e.gone:
		delete(h.pods, e.pod.UID)
	default:
		_, known := h.pods[e.pod.UID]
		h.pods[e.pod.UID] = e.pod
		if known {
			return ""
		}
		h.created++
		owner := metav1.GetControllerOf(e.pod)
		if owner == nil {
			return fmt.Sprintf("pod %s is made without an owner", e.pod.Name)
		}
		if n := h.podsOf(owner.UID); n > h.most[owner.UID] {
			return fmt.Sprintf("ReplicaSet %s gets a pod number %d and was never to have more than %d", owner.Name, n,
				h.most[owner.UID])
		}
	}
	return ""
}

func (h *history) podsOf(owner types.UID) (n int) {
	for _, p := range h.pods {
		if ref := metav1.GetControllerOf(p); ref != nil && ref.UID == owner && p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// count is how many replicas are asked for, how many pods there are that are not on their way out, and how many of
// these are available.
func (h *history) count() (asked, active, available int) {
	for _, s := range h.sets {
		asked += int(*s.Spec.Replicas)
	}
	for _, p := range h.pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		active++
		if podReady(p) {
			available++
		}
	}
	return asked, active, available
}
