package informer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// apiTransport answers discovery and lists of pods, nodes and, once they are defined, widgets. Watches stay silent
// until their context ends. It needs no network, so it works in a bubble.
type apiTransport struct {
	mu sync.Mutex
	// widgets is true once the custom resource is defined.
	widgets bool
	// forbidden has the resources that must not be listed.
	forbidden map[string]bool
	asked     map[string]int
	watching  int
	// streams has the bodies of all watches.
	streams []*io.PipeWriter
}

func (a *apiTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked == nil {
		a.asked = map[string]int{}
	}
	a.asked[r.URL.Path]++
	answer := func(code int, obj any) (*http.Response, error) {
		data, err := json.Marshal(obj)
		return &http.Response{
			StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(string(data))),
		}, err
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource := path[len(path)-1]
	switch {
	case r.URL.Path == "/api/v1":
		return answer(200, metav1.APIResourceList{APIResources: []metav1.APIResource{
			{Name: "pods/status", Kind: "Pod", Namespaced: true},
			{Name: "pods", Kind: "Pod", Namespaced: true},
			{Name: "nodes", Kind: "Node"},
		}})
	case path[0] == "apis" && !a.widgets:
		return answer(404, apierrors.NewNotFound(schema.GroupResource{}, "").Status())
	case r.URL.Path == "/apis/example.com/v1":
		return answer(200,
			metav1.APIResourceList{
				APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget", Namespaced: true}},
			})
	case a.forbidden[resource]:
		status := apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "",
			fmt.Errorf("no right to list %s", resource)).Status()
		status.Kind, status.APIVersion = "Status", "v1"
		return answer(403, status)
	case r.URL.Query().Get("watch") != "":
		return &http.Response{
			StatusCode: 200, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
			Body: a.silence(r.Context()),
		}, nil
	}
	item := map[string]any{"metadata": map[string]any{"name": resource[:1], "resourceVersion": "1"}}
	if path[len(path)-3] == "namespaces" {
		item["metadata"].(map[string]any)["namespace"] = path[len(path)-2]
	}
	return answer(200, map[string]any{"metadata": map[string]any{"resourceVersion": "5"}, "items": []any{item}})
}

// silence is a body without content. It blocks until ctx ends.
func (a *apiTransport) silence(ctx context.Context) io.ReadCloser {
	a.watching++
	r, w := io.Pipe()
	a.streams = append(a.streams, w)
	context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.watching--
		_ = w.CloseWithError(ctx.Err())
	})
	return r
}

func (a *apiTransport) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func newTestFactory(t *testing.T, a *apiTransport, o FactoryOptions) *Factory {
	t.Helper()
	f, err := NewFactory(&rest.Config{Host: "http://api.example", Transport: a}, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestFactoryShares: callers that ask for the same objects share a cache, however they ask. Another representation has
// another cache.
func TestFactoryShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &apiTransport{}
		f := newTestFactory(t, a, FactoryOptions{})
		pod := corev1.SchemeGroupVersion.WithKind("Pod")
		byType := must(For[*corev1.Pod](f))
		defer start(t, f.Run)()
		again := must(For[*corev1.Pod](f)) // While the factory runs.
		byKind := must(ForOptions[Object](f, InformerOptions{Kind: pod}))
		tree := must(ForOptions[*unstructured.Unstructured](f, InformerOptions{Kind: pod}))
		partial := must(ForOptions[*metav1.PartialObjectMetadata](f, InformerOptions{Kind: pod, LabelSelector: "app"}))
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		p, found := byType.Get("", "p")
		if q, _ := again.Get("", "p"); !found || p != q {
			t.Error("two users of one type have two caches")
		}
		if o, _ := byKind.Get("", "p"); o != Object(p) {
			t.Error("a user of the interface has a cache of its own")
		}
		if u, found := tree.Get("", "p"); !found || u.GetKind() != "Pod" {
			t.Errorf("unstructured: %v %v", u, found)
		}
		if m, found := partial.Get("", "p"); !found || m.Kind != "Pod" {
			t.Errorf("metadata: %v %v", m, found)
		}
		for _, form := range []Object{nil, &corev1.Node{}} {
			inf := must(ForKind(f, form, InformerOptions{Kind: pod}))
			if o, _ := inf.Get("", "p"); o != Object(p) {
				t.Errorf("for a kind, with the example %T: another cache", form)
			}
		}
		trees := must(ForKind(f, &unstructured.Unstructured{}, InformerOptions{Kind: pod}))
		if u, _ := tree.Get("", "p"); !slices.Equal(trees.List("", nil), []Object{u}) {
			t.Errorf("for a kind, unstructured: %v", trees.List("", nil))
		}
		stats := f.Stats()
		for _, name := range []string{"pods", "pods (unstructured)", "pods (metadata, app)"} {
			if stats[name].Objects != 1 {
				t.Errorf("%s: %+v of %v", name, stats[name], stats)
			}
		}
	})
}

// TestFactoryCaches: the caches are those in use, and reading them allocates nothing.
func TestFactoryCaches(t *testing.T) {
	f := newTestFactory(t, &apiTransport{}, FactoryOptions{Namespaces: []string{"b", "a"}})
	if n := len(f.Caches()); n != 0 {
		t.Errorf("%d caches of a new factory", n)
	}
	pods := must(For[*corev1.Pod](f))
	nodes := must(ForOptions[*corev1.Node](f, InformerOptions{ClusterScoped: true, LabelSelector: "app"}))
	both := f.Caches()
	Release(pods)
	if all := f.Caches(); len(both) != 2 || len(all) != 1 || all[0] != both[1] {
		t.Fatalf("caches %v, then %v", both, all)
	}
	if o := both[0].Selection(); o.Kind.Kind != "Pod" || !slices.Equal(o.Namespaces, []string{"a", "b"}) {
		t.Errorf("pods: %+v", o)
	}
	if o := both[1].Selection(); o.Kind.Kind != "Node" || o.Namespaces != nil || o.LabelSelector != "app" {
		t.Errorf("nodes: %+v", o)
	}
	resource := corev1.Resource("pods")
	if c := both[0]; c.Resource() != "pods" || !c.IsOf(resource) || both[1].IsOf(resource) {
		t.Errorf("resources %s and %s", both[0].Resource(), both[1].Resource())
	}
	if n := testing.AllocsPerRun(100, func() { f.Caches() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	Release(nodes)
}

// TestFactoryRelease: the informer stops when its last user has gone.
func TestFactoryRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &apiTransport{}
		f := newTestFactory(t, a, FactoryOptions{})
		one, two := must(For[*corev1.Pod](f)), must(For[*corev1.Pod](f))
		defer start(t, f.Run)()
		reg := must(one.AddHandler(Handler[*corev1.Pod]{}, HandlerOptions{}))
		synctest.Wait()
		Release(one)
		Release(one)
		synctest.Wait()
		if a.watching != 1 || len(f.Stats()["pods"].Handlers) != 0 {
			t.Errorf("one user left: %d watches, %+v", a.watching, f.Stats())
		}
		if _, err := one.AddHandler(Handler[*corev1.Pod]{}, HandlerOptions{}); !errors.Is(err, ErrStopped) {
			t.Errorf("handler of a released informer: %v", err)
		}
		if err := two.RemoveHandler(t.Context(), reg); err != nil {
			t.Error(err)
		}
		Release(two)
		synctest.Wait()
		if a.watching != 0 || len(f.Stats()) != 0 {
			t.Errorf("nobody left: %d watches, %+v", a.watching, f.Stats())
		}
		must(For[*corev1.Pod](f))
		synctest.Wait()
		if st := f.Stats()["pods"]; a.watching != 1 || st.Lists != 1 {
			t.Errorf("asked for again: %d watches, %+v", a.watching, st)
		}
	})
}

// TestFactoryNamesDiffer: no two caches have the same name in the statistics. One would hide the other.
func TestFactoryNamesDiffer(t *testing.T) {
	f := newTestFactory(t, &apiTransport{}, FactoryOptions{})
	widget := func(version string) InformerOptions {
		return InformerOptions{Kind: schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Widget"}}
	}
	byLabel, byField := widget("v1"), widget("v1")
	byLabel.LabelSelector, byField.FieldSelector = "a=b", "a=b"
	for _, o := range []InformerOptions{widget("v1"), widget("v2"), byLabel, byField} {
		must(ForOptions[*unstructured.Unstructured](f, o))
	}
	must(For[*corev1.Pod](f))
	stats := f.Stats()
	for _, name := range []string{
		"pods", "widgets.example.com (v1, unstructured)", "widgets.example.com (v2, unstructured)",
		"widgets.example.com (v1, unstructured, a=b)", "widgets.example.com (v1, unstructured, fields a=b)",
	} {
		if _, has := stats[name]; !has {
			t.Errorf("no %s", name)
		}
	}
	if len(stats) != 5 {
		t.Errorf("%d of 5 informers: %v", len(stats), stats)
	}
}

// TestFactoryCustomResourceAppears: an informer of an undefined kind reports that, and waits until it is defined.
func TestFactoryCustomResourceAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &apiTransport{}
		f := newTestFactory(t, a, FactoryOptions{})
		widgets := must(
			ForOptions[*unstructured.Unstructured](f,
				InformerOptions{Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}}),
		)
		defer start(t, f.Run)()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := f.WaitForSync(ctx)
		if err == nil ||
			err.Error() != "cannot list widgets.example.com at the cluster scope: the server has no kind Widget in "+
				"example.com/v1" {
			t.Errorf("not defined: %v", err)
		}
		if n := a.asked["/apis/example.com/v1"]; n > 150 {
			t.Errorf("asked %d times in an hour", n)
		}
		a.set(func() { a.widgets = true })
		if err := f.WaitForSync(t.Context()); err != nil || len(widgets.List("", nil)) != 1 {
			t.Errorf("defined: %v", err)
		}
	})
}

// TestFactoryCustomResourceDisappears: if a kind is no longer defined, its informer keeps the cache, reports why,
// retries now and then without filling the log, and goes on when the kind is defined again.
func TestFactoryCustomResourceDisappears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &apiTransport{widgets: true}
		f := newTestFactory(t, a, FactoryOptions{})
		widgets := must(
			ForOptions[*unstructured.Unstructured](f,
				InformerOptions{Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}}),
		)
		log := ktesting.NewLogger(ktesting.NopTL{},
			ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), log))
		var running sync.WaitGroup
		running.Go(func() { _ = f.Run(ctx) })
		defer running.Wait()
		defer cancel()
		must(0, f.WaitForSync(ctx))
		time.Sleep(time.Minute)
		a.set(func() {
			a.widgets = false
			for _, w := range a.streams {
				_ = w.Close()
			}
			clear(a.asked)
		})
		time.Sleep(time.Hour)
		if err := widgets.Health().Err; err == nil ||
			!strings.Contains(err.Error(), "the server has no kind Widget in example.com/v1") {
			t.Errorf("health: %v", err)
		}
		if lines := log.GetSink().(ktesting.Underlier).GetBuffer().String(); strings.Count(lines, "\n") > 20 ||
			!strings.Contains(lines, "no kind Widget") {
			t.Errorf("the log of an hour:\n%s", lines)
		}
		requests := 0
		for _, n := range a.asked {
			requests += n
		}
		if requests > 150 || len(widgets.List("", nil)) != 1 {
			t.Errorf("%d requests in an hour, %d objects", requests, len(widgets.List("", nil)))
		}
		a.set(func() { a.widgets = true })
		time.Sleep(2 * time.Minute)
		if err := widgets.Health().Err; err != nil || a.watching != 1 {
			t.Errorf("defined again: %v, %d watches", err, a.watching)
		}
	})
}

// TestFactoryNamesLaggards: the error of the wait has one sentence for each informer that has not synced.
func TestFactoryNamesLaggards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &apiTransport{forbidden: map[string]bool{"pods": true}}
		var told error
		f := newTestFactory(t, a, FactoryOptions{OnError: func(_ context.Context, err error) { told = err }})
		must(For[*corev1.Pod](f))
		must(For[*corev1.Node](f))
		defer start(t, f.Run)()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := f.WaitForSync(ctx)
		if err == nil || err.Error() != "cannot list pods at the cluster scope: forbidden: no right to list pods" {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if !apierrors.IsForbidden(told) {
			t.Errorf("OnError was told %v", told)
		}
		if h := f.Health(); h[0].Synced || h[0].Err == nil || !h[1].Synced || h[1].Err != nil {
			t.Errorf("health %+v", h)
		}
	})
}

// TestFactoryNamespaces: a restricted informer lists each namespace. For a cluster-scoped resource, ClusterScoped must
// be set.
func TestFactoryNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &apiTransport{}
		f := newTestFactory(t, a, FactoryOptions{Namespaces: []string{"x", "y", "x"}})
		pods := must(For[*corev1.Pod](f))
		nodes := must(ForOptions[*corev1.Node](f, InformerOptions{ClusterScoped: true}))
		wrong := must(For[*corev1.Node](f))
		defer start(t, f.Run)()
		synctest.Wait()
		if n := len(pods.List("", nil)); n != 2 || len(pods.List("y", nil)) != 1 || a.asked["/api/v1/pods"] != 0 {
			t.Errorf("%d pods, asked %v", n, a.asked)
		}
		if rv := pods.NamespaceResourceVersion("x"); rv == "" || pods.NamespaceResourceVersion("z") != "" {
			t.Errorf("watermark of a namespace that is followed %q", rv)
		}
		if o := f.Options(); o.Scheme == nil || len(o.Namespaces) != 3 {
			t.Errorf("options %+v", o)
		}
		if !nodes.HasSynced() {
			t.Errorf("nodes: %v", nodes.Health().Err)
		}
		if err := wrong.Health().Err; err == nil || !strings.Contains(err.Error(), "nodes have no namespaces") {
			t.Errorf("nodes by namespace: %v", err)
		}
	})
}

func TestFactoryRefusesWhatItCannotKnow(t *testing.T) {
	f := newTestFactory(t, &apiTransport{}, FactoryOptions{})
	if _, err := ForOptions[*unstructured.Unstructured](f, InformerOptions{}); err == nil {
		t.Error("unstructured without a kind")
	}
	if _, err := For[Object](f); err == nil {
		t.Error("an interface without a kind")
	}
	if _, err := For[*unknownKind](f); err == nil {
		t.Error("a type that the scheme does not know")
	}
	if _, err := ForOptions[*corev1.Pod](f,
		InformerOptions{Transform: func(o Object) (Object, error) { return o, nil }}); err == nil {
		t.Error("a transform without a name")
	}
}

// unknownKind is a type that no scheme has.
type unknownKind struct{ corev1.Pod }
