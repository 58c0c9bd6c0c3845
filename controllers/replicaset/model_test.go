package replicaset

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/internal/claim"
	"github.com/flyball-dev/flyball/controllers/internal/fakeapi"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/reconcile"
)

// world is a server with one ReplicaSet, its pods, and watches that lag as much as a test likes. Everything runs in one
// goroutine except the creates and deletes of a batch, which the fake client serializes.
type world struct {
	*reconciler
	t        *testing.T
	rv       int
	set      *appsv1.ReplicaSet
	pods     map[string]*corev1.Pod
	podLog   []change // what the pod watch has not delivered yet
	setLog   []change
	podCache *cache[*corev1.Pod]
	setCache *cache[*appsv1.ReplicaSet]
	server   *fakeapi.Server
	failures int // creates to refuse
	writes   int
}

// change is an event of a watch.
type change struct {
	obj  runtime.Object
	gone bool
}

// remember starts a new controller, which has written nothing.
func (w *world) remember() {
	w.reconciler = newReconciler(&reconciler{
		client: fakeapi.NewClient(w.server), sets: w.setCache, pods: w.podCache, recorder: &recorder{}, burst: 7,
	})
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, pods: map[string]*corev1.Pod{}, set: newSet(0)}
	w.setCache, w.podCache = newCache[*appsv1.ReplicaSet](), newCache[*corev1.Pod]()
	server := fakeapi.NewServer()
	server.PrependReactor("*", "*", w.serve)
	if err := errors.Join(claim.AddIndex(w.podCache), pods.AddLabelIndex(w.podCache),
		claim.AddIndex(w.setCache)); err != nil {
		t.Fatal(err)
	}
	w.server = server
	w.remember()
	w.writeSet(newSet(0))
	return w
}

// serve answers the controller's requests.
func (w *world) serve(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetVerb() != "get" {
		w.writes++
	}
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		if w.failures > 0 {
			w.failures--
			return true, nil, errors.New("refused")
		}
		pod := a.Object.(*corev1.Pod).DeepCopy()
		pod.Namespace, pod.Name = "ns", pod.GenerateName+strconv.Itoa(w.rv)
		pod.UID, pod.Status.Phase = types.UID(pod.Name), corev1.PodPending
		return true, w.writePod(pod), nil
	case clienttesting.DeleteActionImpl:
		pod := w.pods[a.Name]
		if pod == nil {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, a.Name)
		}
		w.kill(pod)
		return true, w.pods[a.Name], nil
	case clienttesting.PatchActionImpl:
		pod, err := w.patch(a)
		return true, pod, err
	case clienttesting.UpdateActionImpl:
		return true, w.writeSet(a.Object.(*appsv1.ReplicaSet)), nil
	case clienttesting.GetActionImpl:
		return true, w.set.DeepCopy(), nil
	}
	w.t.Fatalf("unexpected request %v", action)
	return false, nil, nil
}

// patch applies the two patches that claims send. One that changes nothing makes no new version.
func (w *world) patch(a clienttesting.PatchActionImpl) (*corev1.Pod, error) {
	pod := w.pods[a.Name]
	if pod == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, a.Name)
	}
	release := bytes.Contains(a.Patch, []byte(`"$patch":"delete"`))
	if owned := pod.OwnerReferences != nil; owned != release {
		return pod, nil
	}
	pod = pod.DeepCopy()
	pod.OwnerReferences = nil
	if !release {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.set, kind)}
	}
	return w.writePod(pod), nil
}

func (w *world) version() string { w.rv++; return strconv.Itoa(w.rv) }

func (w *world) writePod(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ResourceVersion = w.version()
	w.pods[pod.Name] = pod
	w.podLog = append(w.podLog, change{obj: pod})
	return pod
}

func (w *world) writeSet(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	w.set = set.DeepCopy()
	w.set.ResourceVersion = w.version()
	w.setLog = append(w.setLog, change{obj: w.set})
	return w.set
}

// kill starts the graceful deletion of a pod.
func (w *world) kill(pod *corev1.Pod) {
	if pod.DeletionTimestamp == nil {
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = &metav1.Time{Time: epoch}
		w.writePod(pod)
	}
}

// kubelet advances a pod by one step: to running, or to deleted.
func (w *world) kubelet(pod *corev1.Pod) {
	pod = pod.DeepCopy()
	switch {
	case pod.DeletionTimestamp != nil:
		delete(w.pods, pod.Name)
		pod.ResourceVersion = w.version()
		w.podLog = append(w.podLog, change{pod, true})
	case pod.Status.Phase == corev1.PodPending:
		pod.Spec.NodeName, pod.Status.Phase = "node-"+pod.Name[len(pod.Name)-1:], corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: time.Now()}},
		}
		w.writePod(pod)
	}
}

// deliver moves up to n events from each watch to its cache.
func (w *world) deliver(podEvents, setEvents int) {
	for ; podEvents > 0 && len(w.podLog) > 0; podEvents-- {
		pod := w.podLog[0].obj.(*corev1.Pod)
		if w.podCache.put(pod); w.podLog[0].gone {
			w.podCache.remove(pod)
		}
		w.podCache.watermark, w.podLog = pod.ResourceVersion, w.podLog[1:]
	}
	for ; setEvents > 0 && len(w.setLog) > 0; setEvents-- {
		set := w.setLog[0].obj.(*appsv1.ReplicaSet)
		w.setCache.put(set)
		w.setCache.watermark, w.setLog = set.ResourceVersion, w.setLog[1:]
	}
}

const all = 1 << 30

// active returns the true number of the set's pods that count.
func (w *world) active() int {
	n := 0
	for _, pod := range w.pods {
		if pods.Active(pod) && pod.OwnerReferences != nil && pod.Labels["app"] == "web" {
			n++
		}
	}
	return n
}

// sync reconciles, and checks that the result does not overshoot what the cached set asks for. The controller cannot
// know pods that others deleted or relabelled while the cache lags. While others are at work, sync therefore checks
// only that there are not too many creates.
func (w *world) sync(others bool) error {
	key := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}}
	if w.ready(w.t.Context(), key) != nil {
		return nil // The loop would postpone it.
	}
	before := w.active()
	_, err := w.Reconcile(w.t.Context(), key)
	after := w.active()
	cached, ok := w.setCache.Get("ns", "web")
	if !ok {
		return err
	}
	want := int(*cached.Spec.Replicas)
	if after > before && after > want {
		w.t.Fatalf("went from %d to %d pods, wanted %d", before, after, want)
	}
	if !others && after < before && after < want {
		w.t.Fatalf("went from %d down to %d pods, wanted %d", before, after, want)
	}
	return err
}

// pick returns the n-th pod, modulo their number.
func (w *world) pick(n int) *corev1.Pod {
	if len(w.pods) == 0 {
		return nil
	}
	var list []*corev1.Pod
	for _, pod := range w.pods {
		list = append(list, pod)
	}
	sortByName(list)
	return list[n%len(list)]
}

// step performs the action that one byte of the input encodes.
func (w *world) step(op byte, others bool) {
	n := int(op >> 4)
	switch op & 15 {
	case 0, 1, 2:
		_ = w.sync(others)
	case 3, 4:
		w.deliver(1+n%3, 0)
	case 5:
		w.deliver(0, 1)
	case 6:
		w.deliver(all, all)
	case 7:
		set := w.set.DeepCopy()
		set.Spec.Replicas, set.Generation = ptr.To(int32(n)), set.Generation+1
		w.writeSet(set)
	case 8, 9, 10:
		if pod := w.pick(n); pod != nil {
			w.kubelet(pod)
		}
	case 11:
		w.failures = n
	case 12: // the controller restarts: what it remembers is gone, its caches are fresh
		w.remember()
		w.deliver(all, all)
	case 13, 14:
		if pod := w.pick(n); pod != nil && others {
			w.kill(pod)
		}
	case 15:
		if pod := w.pick(n); pod != nil && others && pod.DeletionTimestamp == nil {
			relabelled := pod.DeepCopy()
			relabelled.Labels = map[string]string{
				"app": map[bool]string{true: "other", false: "web"}[pod.Labels["app"] == "web"],
			}
			w.writePod(relabelled)
		}
	}
}

// settle runs everything that is due, until nothing is.
func (w *world) settle() {
	w.failures = 0
	for range 200 {
		w.deliver(all, all)
		writes := w.writes
		err := w.sync(true)
		busy := err != nil || w.writes != writes
		for range len(w.pods) {
			for _, pod := range w.pods {
				if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodPending {
					w.kubelet(pod)
					busy = true
				}
			}
		}
		if !busy {
			return
		}
	}
	w.t.Fatal("never comes to rest")
}

// FuzzLaggingCaches interleaves syncs with scaling, failures, restarts and watches that deliver late. The number of
// pods must never overshoot, and must end at what the set asks for.
func FuzzLaggingCaches(f *testing.F) {
	f.Add([]byte("\x57\x05\x00\x00\x13\x00\x33\x00\x06\x00"), false)
	f.Add([]byte("\x97\x06\x00\x06\x00\x27\x05\x00\x00\x06\x00"), false)
	f.Add([]byte("\x97\x06\x00\x2d\x1f\x00\x13\x00\x06\x00\x0f\x00"), true)
	f.Add([]byte("\x97\x06\x2b\x00\x00\x0c\x00\x06\x00"), true)
	f.Fuzz(func(t *testing.T, ops []byte, others bool) {
		if len(ops) > 300 {
			t.Skip("long enough is long enough")
		}
		live(t, ops, others)
	})
}

// TestLaggingCaches runs FuzzLaggingCaches on some hundred random inputs.
func TestLaggingCaches(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 0))
		ops := make([]byte, 20+r.IntN(80))
		for i := range ops {
			ops[i] = byte(r.UintN(256))
		}
		if live(t, ops, seed%2 == 1); t.Failed() {
			t.Fatalf("seed %d: %q", seed, ops)
		}
	}
}

// live runs a set through one input and checks how it ends.
func live(t *testing.T, ops []byte, others bool) {
	w := newWorld(t)
	for _, op := range ops {
		w.step(op, others)
	}
	w.settle()
	want := *w.set.Spec.Replicas
	if got := w.active(); got != int(want) {
		t.Errorf("%d pods in the end, want %d", got, want)
	}
	status := w.set.Status
	got := fmt.Sprint(status.Replicas, status.ReadyReplicas, status.AvailableReplicas, *status.TerminatingReplicas,
		status.ObservedGeneration, len(status.Conditions))
	if wanted := fmt.Sprint(want, want, want, 0, w.set.Generation, 0); got != wanted {
		t.Errorf("status in the end is %s, want %s", got, wanted)
	}
	if n := w.client.Stats().Unseen; n != 0 {
		t.Errorf("%d writes are left when all is seen", n)
	}
}

// A deleted pod may still look alive in the cache, and may come to rank higher than another pod. That other pod must
// not be deleted, too.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, UIDTrackingControllerExpectations
func TestDeletedPodsAreWaitedFor(t *testing.T) {
	w := newWorld(t)
	scale := func(n int32) {
		set := w.set.DeepCopy()
		set.Spec.Replicas, set.Generation = ptr.To(n), set.Generation+1
		w.writeSet(set)
	}
	sync := func() {
		t.Helper()
		if err := w.sync(false); err != nil {
			t.Fatal(err)
		}
	}
	scale(3)
	w.deliver(all, all)
	sync()
	w.deliver(all, all)
	sync()
	w.kubelet(w.pick(0)) // runs now, which the cache shows later
	scale(2)
	w.deliver(0, all)
	sync()
	if pod := w.pick(0); pod.DeletionTimestamp == nil {
		t.Fatal("the first pod was to be the victim: the test does not test what it should")
	}
	w.deliver(1, all) // it runs: the others now come first
	sync()
	equal(t, "pods while its deletion is not seen", w.active(), 2)
	w.deliver(all, all)
	sync()
	equal(t, "pods in the end", w.active(), 2)
}
