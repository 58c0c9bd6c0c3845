package pebble_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
)

// apiDefects are the cases of the package comment that concern the API on top of a store.
var apiDefects = []struct {
	number int
	name   string
	test   func(api)
}{
	{1, "AnswersAreFilled", testAnswersAreFilled},
	{4, "ListsHaveTheirKinds", testListsHaveTheirKinds},
	{5, "PatchesChange", testPatchesChange},
	{6, "UpdateIsOneEvent", testUpdateIsOneEvent},
	{7, "UIDsAreUnique", testUIDsAreUnique},
	{8, "NotFoundIsAReason", testNotFoundIsAReason},
	{11, "SlowWatcherGets410", testSlowWatcherGets410},
	{16, "ManyServersOneStore", testManyServersOneStore},
	{18, "NothingExpiresByItself", testNothingExpires},
	{19, "EventsAndStart", testEventsAndStart},
	{20, "EventsInOrderRecorded", testEventsInOrderRecorded},
}

// apiCases are more of the API on top of a store.
var apiCases = []struct {
	name string
	test func(api)
}{
	{"InformerFollows", testInformerFollows},
	{"ServerReopened", testServerReopened},
}

// api is an embedded API server on an empty store.
type api struct {
	t      *testing.T
	ctx    context.Context
	store  fixture
	config *rest.Config
	client kubernetes.Interface
	maps   corev1client.ConfigMapInterface
}

func newAPI(t *testing.T, b backend) api {
	f := newFixture(t, b)
	return serve(f, localapi.Options{})
}

// serve puts a server on the fixture's store.
func serve(f fixture, o localapi.Options) api {
	f.t.Helper()
	o.Storage = f.Storage
	server, err := localapi.New(o)
	f.fails("new server", err, nil)
	f.t.Cleanup(func() { _ = server.Close() })
	return api{t: f.t, ctx: f.ctx, store: f, config: server.RESTConfig()}.connected()
}

// connected is the api with clients of its config.
func (a api) connected() api {
	a.t.Helper()
	client, err := kubernetes.NewForConfig(a.config)
	a.store.fails("new client", err, nil)
	a.client, a.maps = client, client.CoreV1().ConfigMaps("default")
	return a
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": value}}
}

func (a api) create(m *corev1.ConfigMap) *corev1.ConfigMap {
	a.t.Helper()
	m, err := a.maps.Create(a.ctx, m, metav1.CreateOptions{})
	a.store.fails("create", err, nil)
	return m
}

// events returns the next n events of a watch, as "TYPE name=value".
func (a api) events(w watch.Interface, n int) []string {
	a.t.Helper()
	got := []string{}
	for range n {
		select {
		case e := <-w.ResultChan():
			m, ok := e.Object.(*corev1.ConfigMap)
			if !ok {
				a.t.Fatalf("after %q: %s %v", got, e.Type, apierrors.FromObject(e.Object))
			}
			got = append(got, fmt.Sprintf("%s %s=%s", e.Type, m.Name, m.Data["k"]))
		case <-time.After(time.Minute):
			a.t.Fatalf("no event after %q", got)
		}
	}
	return got
}

func testAnswersAreFilled(a api) {
	created := a.create(configMap("x", "1"))
	if created.UID == "" || created.ResourceVersion == "" || created.CreationTimestamp.IsZero() ||
		created.Data["k"] != "1" {
		a.t.Errorf("answer of the create: %+v", created)
	}
	got, err := a.maps.Get(a.ctx, "x", metav1.GetOptions{})
	a.store.fails("get", err, nil)
	a.store.equal("what is stored is what was answered", got, created)
	answer, err := a.client.CoreV1().RESTClient().Delete().AbsPath("/api/v1/namespaces/default/configmaps/x").DoRaw(
		a.ctx,
	)
	a.store.fails("delete", err, nil)
	if !strings.Contains(string(answer), string(created.UID)) {
		a.t.Errorf("answer of the delete: %s", answer)
	}
}

func testListsHaveTheirKinds(a api) {
	client, err := dynamic.NewForConfig(a.config)
	a.store.fails("new client", err, nil)
	for _, c := range []struct{ group, resource, kind string }{
		{"", "configmaps", "ConfigMapList"},
		{"", "pods", "PodList"},
		{"apps", "deployments", "DeploymentList"},
		{"discovery.k8s.io", "endpointslices", "EndpointSliceList"},
	} {
		list, err := client.Resource(
			schema.GroupVersionResource{Group: c.group, Version: "v1", Resource: c.resource},
		).List(a.ctx, metav1.ListOptions{})
		a.store.fails("list", err, nil)
		a.store.equal("kind", list.GetKind(), c.kind)
	}
}

func testPatchesChange(a api) {
	last := a.create(configMap("x", "1"))
	for i, c := range []struct {
		kind  types.PatchType
		patch string
	}{
		{types.JSONPatchType, `[{"op":"replace","path":"/data/k","value":"v0"}]`},
		{types.MergePatchType, `{"data":{"k":"v1"}}`},
		{types.StrategicMergePatchType, `{"data":{"k":"v2"}}`},
		{types.ApplyYAMLPatchType, `{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"v3"}}`},
	} {
		force := c.kind == types.ApplyYAMLPatchType
		o := metav1.PatchOptions{FieldManager: "test"}
		if force {
			o.Force = &force
		}
		m, err := a.maps.Patch(a.ctx, "x", c.kind, []byte(c.patch), o)
		a.store.fails(string(c.kind), err, nil)
		if m.Data["k"] != fmt.Sprintf("v%d", i) || m.ResourceVersion == last.ResourceVersion || m.UID != last.UID {
			a.t.Errorf("%s: %+v", c.kind, m)
		}
		last = m
	}
}

func testUpdateIsOneEvent(a api) {
	created := a.create(configMap("x", "1"))
	w, err := a.maps.Watch(a.ctx,
		metav1.ListOptions{ResourceVersion: created.ResourceVersion, FieldSelector: "metadata.name=x"})
	a.store.fails("watch", err, nil)
	defer w.Stop()
	changed := created.DeepCopy()
	changed.Data["k"] = "2"
	updated, err := a.maps.Update(a.ctx, changed, metav1.UpdateOptions{})
	a.store.fails("update", err, nil)
	if updated.UID != created.UID || !updated.CreationTimestamp.Equal(&created.CreationTimestamp) {
		a.t.Errorf("the update made another object: %+v", updated)
	}
	if _, err = a.maps.Update(a.ctx, changed, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		a.t.Errorf("update from an old version: %v, want Conflict", err)
	}
	a.store.fails("delete", a.maps.Delete(a.ctx, "x", metav1.DeleteOptions{}), nil)
	a.store.equal("events", a.events(w, 2), []string{"MODIFIED x=2", "DELETED x=2"})
}

func testUIDsAreUnique(a api) {
	seen := map[types.UID]bool{}
	for range 50 {
		seen[a.create(configMap("x", "1")).UID] = true
		a.store.fails("delete", a.maps.Delete(a.ctx, "x", metav1.DeleteOptions{}), nil)
	}
	a.store.equal("UIDs of 50 objects of one name", len(seen), 50)
}

func testNotFoundIsAReason(a api) {
	_, err := a.maps.Get(a.ctx, "x", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		a.t.Errorf("get: %v, want NotFound", err)
	}
	m := a.create(configMap("not-found", "1"))
	m.ResourceVersion = "1"
	_, err = a.maps.Update(a.ctx, m, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		a.t.Errorf("update of not-found: %v, want Conflict", err)
	}
}

// testSlowWatcherGets410: a watcher that does not read gets the error that its version has expired, after the store has
// compacted it.
func testSlowWatcherGets410(a api) {
	a = serve(a.store, localapi.Options{Tenant: "slow", HistoryLimit: 50})
	first := a.create(configMap("x", "0"))
	slow, err := a.maps.Watch(a.ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	a.store.fails("watch", err, nil)
	defer slow.Stop()
	const writes = 500
	for i := range writes {
		patch := fmt.Sprintf(`{"data":{"k":"%d"}}`, i+1)
		_, err := a.maps.Patch(a.ctx, "x", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		a.store.fails("patch", err, nil)
	}
	for n := 0; ; n++ {
		e, ok := <-slow.ResultChan()
		if !ok {
			a.t.Fatalf("closed after %d events", n)
		}
		if e.Type == watch.Error {
			if err := apierrors.FromObject(e.Object); !apierrors.IsResourceExpired(err) {
				a.t.Errorf("error event %v, want Expired", err)
			}
			return
		}
		if n > writes {
			a.t.Fatal("the slow watcher got every event")
		}
	}
}

func testManyServersOneStore(a api) {
	one, two := serve(a.store, localapi.Options{Tenant: "a"}), serve(a.store, localapi.Options{Tenant: "ab"})
	w, err := one.client.CoreV1().ConfigMaps("").Watch(a.ctx, metav1.ListOptions{})
	a.store.fails("watch", err, nil)
	defer w.Stop()
	two.create(configMap("x", "of ab"))
	one.create(configMap("x", "of a"))
	a.store.fails("delete", two.client.CoreV1().ConfigMaps("default").DeleteCollection(a.ctx, metav1.DeleteOptions{},
		metav1.ListOptions{}), nil)
	one.create(configMap("y", "of a"))
	a.store.equal("events of a", one.events(w, 2), []string{"ADDED x=of a", "ADDED y=of a"})
	for server, want := range map[*api]int{&one: 2, &two: 0} {
		list, err := server.client.CoreV1().ConfigMaps("").List(a.ctx, metav1.ListOptions{})
		a.store.fails("list", err, nil)
		a.store.equal("objects", len(list.Items), want)
	}
	for _, hostile := range []string{"a/b", "..", "a\x00b", "%2e%2e"} {
		if _, err := one.maps.Create(a.ctx, configMap(hostile, "1"),
			metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			a.t.Errorf("object %q: %v, want Invalid", hostile, err)
		}
	}
	for _, hostile := range []string{"a/b", "../a", "A", ".", "a\x00"} {
		if _, err := localapi.New(localapi.Options{Storage: a.store.Storage, Tenant: hostile}); err == nil ||
			!strings.Contains(err.Error(), "tenant") {
			a.t.Errorf("tenant %q: %v, want an error that names it", hostile, err)
		}
	}
}

// testNothingExpires: there is no time to live that a backend could forget to honour, and so none is accepted by
// [storage.Write].
func testNothingExpires(a api) {
	a.create(configMap("x", "1"))
	key := storageKey("default", "configmaps", "default", "x")
	r, err := a.store.Get(a.ctx, key)
	a.store.fails("get", err, nil)
	a.store.fails("compact", a.store.Compact(a.ctx, r.Revision), nil)
	_, err = a.store.Get(a.ctx, key)
	a.store.fails("get after everything else was forgotten", err, nil)
}

// testEventsAndStart: a manager with an event recorder starts, records while it starts, and stops.
func testEventsAndStart(a api) {
	a.runManager(func(m *manager.Manager) {
		m.GetEventRecorderFor("early").Eventf(configMap("x", "1"), corev1.EventTypeNormal, "Started",
			"while the manager runs")
	})
	a.store.equal("events", a.recorded(), []string{"Started"})
}

// testEventsInOrderRecorded: events are stored in the order in which they were recorded, and none is lost.
func testEventsInOrderRecorded(a api) {
	want := []string{}
	a.runManager(func(m *manager.Manager) {
		subject := a.create(configMap("x", "1"))
		for i := range 20 {
			want = append(want, fmt.Sprintf("Step%02d", i))
			m.GetEventRecorderFor("test").Eventf(subject, corev1.EventTypeNormal, want[i], "done")
		}
	})
	a.store.equal("events", a.recorded(), want)
}

// runManager runs a manager until work has returned.
func (a api) runManager(work func(*manager.Manager)) {
	a.t.Helper()
	m, err := manager.New(a.config, manager.Options{})
	a.store.fails("new manager", err, nil)
	ctx, stop := context.WithCancel(a.ctx)
	defer stop()
	a.store.fails("add", m.Add(runnable(func(context.Context) error {
		work(m)
		stop()
		return nil
	})), nil)
	if err := m.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		a.t.Errorf("run: %v", err)
	}
}

type runnable func(context.Context) error

// Run implements [manager.Runnable].
func (r runnable) Run(ctx context.Context) error { return r(ctx) }

// recorded are the reasons of the stored events, in the order of their resource versions.
func (a api) recorded() []string {
	a.t.Helper()
	reasons := []string{}
	w := a.store.watch("default/core/events/", a.compacted())
	events, _, err := w.Poll()
	a.store.fails("poll", err, nil)
	list, err := a.client.CoreV1().Events("").List(a.ctx, metav1.ListOptions{})
	a.store.fails("list events", err, nil)
	byName := map[string]string{}
	for _, e := range list.Items {
		byName[e.Name] = e.Reason
	}
	for _, e := range events {
		key := e.Key[strings.LastIndexByte(e.Key, '/')+1:]
		reasons = append(reasons, byName[key])
	}
	return reasons
}

func (a api) compacted() int64 {
	_, compacted := a.store.Revision()
	return compacted
}
