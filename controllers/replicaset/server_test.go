package replicaset

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/internal/claim"
	"github.com/flyball-dev/flyball/controllers/internal/fakeapi"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/reconcile"
)

// recorder records events as "Type Reason message".
type recorder struct {
	events.Recorder // Only Eventf is called.

	mu     sync.Mutex
	events []string
}

func (r *recorder) Eventf(_ runtime.Object, eventType, reason, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, eventType+" "+reason+" "+fmt.Sprintf(format, args...))
}

// fixture is a reconciler with caches filled by hand and a fake server. The caches do not show what it writes to the
// server until the test calls show.
type fixture struct {
	*reconciler
	mu    sync.Mutex
	named int
	// refuse, if set, is called before the server creates the n-th pod, counting from 0.
	refuse   func(n int) error
	setCache *cache[*appsv1.ReplicaSet]
	podCache *cache[*corev1.Pod]
	server   *fakeapi.Server
	recorder *recorder
}

func newFixture(t *testing.T, set *appsv1.ReplicaSet, list ...*corev1.Pod) *fixture {
	t.Helper()
	f := &fixture{
		setCache: newCache(set), podCache: newCache(list...),
		server: fakeapi.NewServer(), recorder: &recorder{},
	}
	for _, obj := range append([]runtime.Object{set}, asObjects(list)...) {
		if err := f.server.Tracker().Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	f.server.PrependReactor("create", "pods", f.create)
	err := errors.Join(claim.AddIndex(f.podCache), claim.AddIndex(f.setCache), pods.AddLabelIndex(f.podCache))
	if err != nil {
		t.Fatal(err)
	}
	f.reconciler = newReconciler(&reconciler{
		client: fakeapi.NewClient(f.server), sets: f.setCache, pods: f.podCache, recorder: f.recorder,
	})
	return f
}

// create is the part of a server that makes up names.
func (f *fixture) create(action clienttesting.Action) (bool, runtime.Object, error) {
	f.mu.Lock()
	n := f.named
	f.named++
	f.mu.Unlock()
	if f.refuse != nil {
		if err := f.refuse(n); err != nil {
			return true, nil, err
		}
	}
	pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
	pod.Namespace = action.GetNamespace()
	pod.Name = pod.GenerateName + strconv.Itoa(n)
	pod.UID = types.UID(pod.Name + "-uid")
	pod.ResourceVersion = strconv.Itoa(100 + n)
	return true, pod, f.server.Tracker().Add(pod)
}

func asObjects(list []*corev1.Pod) []runtime.Object {
	var objects []runtime.Object
	for _, pod := range list {
		objects = append(objects, pod)
	}
	return objects
}

// sync reconciles ns/web, as the loop does.
func (f *fixture) sync(ctx context.Context) (reconcile.Result, error) {
	key := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}}
	if err := f.ready(ctx, key); err != nil {
		return reconcile.Result{}, err
	}
	return f.Reconcile(ctx, key)
}

// requests returns the requests since the last call: "verb resource[/subresource] [name]", one line for equal
// neighbours.
func (f *fixture) requests() []string {
	var lines []string
	for _, a := range f.server.Actions() {
		line := a.GetVerb() + " " + a.GetResource().Resource
		if sub := a.GetSubresource(); sub != "" {
			line += "/" + sub
		}
		switch named := a.(type) {
		case clienttesting.DeleteAction:
			line += " " + named.GetName()
		case clienttesting.PatchAction:
			line += " " + named.GetName()
		}
		lines = append(lines, line)
	}
	f.server.ClearActions()
	return lines
}

// show brings the caches up to date with the server's set and pods, and forgets the requests so far.
func (f *fixture) show(t *testing.T) {
	t.Helper()
	list, err := f.server.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"),
		corev1.SchemeGroupVersion.WithKind("Pod"), "ns")
	if err != nil {
		t.Fatal(err)
	}
	clear(f.podCache.objects)
	for i := range list.(*corev1.PodList).Items {
		f.podCache.put(&list.(*corev1.PodList).Items[i])
	}
	set, err := f.server.Tracker().Get(appsv1.SchemeGroupVersion.WithResource("replicasets"), "ns", "web")
	if err != nil {
		t.Fatal(err)
	}
	f.setCache.put(set.(*appsv1.ReplicaSet))
	f.podCache.watermark, f.setCache.watermark = "99999", "99999"
	f.server.ClearActions()
}

// status returns the set's status on the server.
func (f *fixture) status(t *testing.T) appsv1.ReplicaSetStatus {
	t.Helper()
	set, err := f.server.Tracker().Get(appsv1.SchemeGroupVersion.WithResource("replicasets"), "ns", "web")
	if err != nil {
		t.Fatal(err)
	}
	return set.(*appsv1.ReplicaSet).Status
}

func (f *fixture) mustSync(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := f.sync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// mustWait requires that the sync is postponed.
func (f *fixture) mustWait(t *testing.T) {
	t.Helper()
	if _, err := f.sync(t.Context()); !errors.Is(err, client.ErrStale) {
		t.Fatalf("error = %v, want that the cache is stale", err)
	}
}

// steady returns the status of a set with n ready pods for which nothing has to be written.
func steady(n int32) setOption {
	return withStatus(appsv1.ReplicaSetStatus{
		Replicas: n, FullyLabeledReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		TerminatingReplicas: ptr.To[int32](0), ObservedGeneration: 1,
	})
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (f *fixture) podsOnServer(t *testing.T) []*corev1.Pod {
	t.Helper()
	list, err := f.server.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"),
		corev1.SchemeGroupVersion.WithKind("Pod"), "ns")
	if err != nil {
		t.Fatal(err)
	}
	var found []*corev1.Pod
	for i := range list.(*corev1.PodList).Items {
		found = append(found, &list.(*corev1.PodList).Items[i])
	}
	sortByName(found)
	return found
}

// recreate replaces the set by another of its name, on the server and in the cache, and forgets the requests so far.
func (f *fixture) recreate(t *testing.T) {
	t.Helper()
	second := newSet(1, func(s *appsv1.ReplicaSet) { s.UID = "second" })
	if err := f.server.Tracker().Update(appsv1.SchemeGroupVersion.WithResource("replicasets"), second,
		"ns"); err != nil {
		t.Fatal(err)
	}
	f.setCache.put(second)
	f.server.ClearActions()
}
