package controllerruntime_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bothReaders runs test with a cache that has started, and with a client that reads it.
func bothReaders(t *testing.T, o cache.Options, test func(w *world, r client.Reader), objects ...runtime.Object) {
	t.Helper()
	bothCaches(t, o, nil, func(w *world) {
		c, err := w.newClient()(w.api.RESTConfig(),
			client.Options{Cache: &client.CacheOptions{Reader: w.Cache, Unstructured: true}})
		w.must(err)
		w.start()
		test(w, w.Cache)
		test(w, c)
	}, objects...)
}

// TestKindWithoutAList: a read of a kind that can only be created fails at once. It waited for ever on kube-apiserver,
// which knows no path for a list of all bindings.
func TestKindWithoutAList(t *testing.T) {
	bothReaders(t, cache.Options{}, func(w *world, r client.Reader) {
		err := r.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &corev1.Binding{})
		if !runtime.IsNotRegisteredError(err) {
			w.t.Errorf("get of a Binding: %v", err)
		}
	})
}

// TestNotFoundErrors: reads return controller-runtime's errors, which operators may distinguish, even for keys that no
// object can have.
func TestNotFoundErrors(t *testing.T) {
	bothReaders(t, cache.Options{}, func(w *world, r client.Reader) {
		for _, key := range []client.ObjectKey{
			{Namespace: "a", Name: "none"},
			{Namespace: "none", Name: "one"},
			{Namespace: "a"},
			{Name: "one"},
			{},
		} {
			err := r.Get(w.ctx, key, &corev1.ConfigMap{})
			var status *apierrors.StatusError
			if !apierrors.IsNotFound(err) || err.Error() != `ConfigMap "`+key.Name+`" not found` ||
				!errors.As(err, &status) || status.ErrStatus.Details.Kind != "ConfigMap" {
				w.t.Errorf("get %s: %v", key, err)
			}
		}
		if err := r.Get(w.ctx, client.ObjectKey{Name: "none"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) ||
			err.Error() != `Namespace "none" not found` {
			w.t.Errorf("get of a cluster-scoped object: %v", err)
		}
		list := corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		w.must(r.List(w.ctx, &list, client.InNamespace("none")))
		if list.Items == nil || len(list.Items) != 0 || list.ResourceVersion != "7" || list.Kind != "" {
			w.t.Errorf("an empty list: %+v", list)
		}
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind("Unheard")
		if err := r.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, u); !meta.IsNoMatchError(err) {
			w.t.Errorf("a kind that the server does not have: %v", err)
		}
		if err := r.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"},
			&unstructured.Unstructured{}); err == nil {
			w.t.Error("a kind that is not said")
		}
	}, three()...)
}

// TestSelectors: selectors give controller-runtime's results, even where better ones are possible.
func TestSelectors(t *testing.T) {
	bothReaders(t, cache.Options{}, func(w *world, r client.Reader) {
		kind := func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["kind"]} }
		if err := w.IndexField(w.ctx, &corev1.ConfigMap{}, "kind", kind); err != nil &&
			!strings.Contains(err.Error(), "indexer conflict") {
			w.t.Error(err) // After the start, and the second time for the second reader.
		}
		inf, err := w.GetInformer(w.ctx, &corev1.ConfigMap{})
		w.must(err)
		// Another one of the same name.
		_ = inf.AddIndexers(toolscache.Indexers{"kind": func(any) ([]string, error) { return nil, nil }})
		var list corev1.ConfigMapList
		for what, c := range map[string]struct {
			o    client.ListOption
			want string
		}{
			"no fields": {client.MatchingFields{}, "non-exact field matches are not supported"},
			"all fields": {
				client.MatchingFieldsSelector{Selector: fields.Everything()},
				"non-exact field matches are not supported",
			},
			"not equal": {
				client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("kind", "x")},
				"non-exact field matches are not supported",
			},
			"a name": {
				client.MatchingFields{"metadata.name": "one"},
				"with name field:metadata.name does not exist",
			},
			"none and another": {
				client.MatchingFields{"kind": "one", "none": "x"},
				"with name field:none does not exist",
			},
			"a page": {client.Continue("x"), "continue list option is not supported"},
		} {
			if err := r.List(w.ctx, &list, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				w.t.Errorf("%s: %v, want %s", what, err, c.want)
			}
		}
		count := func(what string, want int, opts ...client.ListOption) {
			w.t.Helper()
			w.must(r.List(w.ctx, &list, opts...))
			if len(list.Items) != want || list.Continue != "continue-not-supported" {
				w.t.Errorf("%s: %d items, want %d; continue %q", what, len(list.Items), want, list.Continue)
			}
		}
		count("index", 1, client.MatchingFields{"kind": "one"})
		count("index, namespace", 1, client.MatchingFields{"kind": "one"}, client.InNamespace("a"))
		count("index, another namespace", 0, client.MatchingFields{"kind": "one"}, client.InNamespace("b"))
		count("index, labels", 1, client.MatchingFields{"kind": "one"}, client.MatchingLabels{"app": "web"})
		count("limit of what labels select", 1, client.Limit(1), client.MatchingLabels{"app": "web"})
		count("a limit that is not reached", 2, client.Limit(9), client.MatchingLabels{"app": "web"})
		count("has labels", 2, client.HasLabels{"app"})
	}, three()...)
}

// TestReadsWithACancelledContext: cached reads need no live context. Reconciles that end during a stop depend on that.
func TestReadsWithACancelledContext(t *testing.T) {
	bothReaders(t, cache.Options{}, func(w *world, r client.Reader) {
		w.must(r.List(w.ctx, &corev1.ConfigMapList{}))
		over, cancel := context.WithCancel(w.ctx)
		cancel()
		w.must(r.Get(over, client.ObjectKey{Namespace: "a", Name: "one"}, &corev1.ConfigMap{}))
		w.must(r.List(over, &corev1.ConfigMapList{}, client.MatchingLabels{"app": "web"}))
		if err := r.Get(over, client.ObjectKey{Namespace: "a", Name: "one"}, &corev1.Secret{}); err != nil &&
			!apierrors.IsTimeout(err) && !apierrors.IsNotFound(err) {
			w.t.Errorf("read of an uncached kind: %v", err)
		}
	}, three()...)
}

// TestReadsAfterTheStop: reads after the stop return what the cache held.
func TestReadsAfterTheStop(t *testing.T) {
	bothCaches(t, cache.Options{}, nil, func(w *world) {
		c, err := w.newClient()(w.api.RESTConfig(), client.Options{Cache: &client.CacheOptions{Reader: w.Cache}})
		w.must(err)
		ctx, stop := context.WithCancel(w.ctx)
		var wg sync.WaitGroup
		wg.Go(func() { w.must(w.Start(ctx)) })
		synctest.Wait()
		inf, err := w.GetInformer(w.ctx, &corev1.ConfigMap{})
		w.must(err)
		stop()
		wg.Wait()
		if !inf.IsStopped() {
			w.t.Error("not stopped")
		}
		if err := w.Start(w.ctx); err == nil {
			w.t.Error("started a second time")
		}
		for _, r := range []client.Reader{w.Cache, c} {
			w.must(r.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &corev1.ConfigMap{}))
			w.must(r.List(w.ctx, &corev1.ConfigMapList{}))
		}
	}, three()...)
}

// TestNamespacesThatAreNotCached: a namespace that a field selector excludes is empty; one that Options excludes is an
// error. Cluster-scoped kinds are unaffected.
func TestNamespacesThatAreNotCached(t *testing.T) {
	only := fields.OneTermEqualSelector("metadata.namespace", "a")
	object := &corev1.ConfigMap{}
	for name, c := range map[string]struct {
		o       cache.Options
		unknown bool
	}{
		"left out by a field": {
			cache.Options{ByObject: map[client.Object]cache.ByObject{object: {Field: only}}}, false,
		},
		"left out by the default": {
			cache.Options{ByObject: map[client.Object]cache.ByObject{object: {}}, DefaultFieldSelector: only}, false,
		},
		"left out by namespaces": {cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}}}, true},
		"left out by the kind's": {
			cache.Options{
				ByObject: map[client.Object]cache.ByObject{object: {Namespaces: map[string]cache.Config{"a": {}}}},
			}, true,
		},
		"left out by all but the rest": {
			cache.Options{
				DefaultNamespaces: map[string]cache.Config{
					"a":                 {},
					cache.AllNamespaces: {FieldSelector: fields.OneTermEqualSelector("metadata.name", "none")},
				},
			}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothReaders(t, c.o, func(w *world, r client.Reader) {
				var list corev1.ConfigMapList
				w.must(r.List(w.ctx, &list))
				if len(list.Items) != 2 {
					w.t.Errorf("%d in all", len(list.Items))
				}
				w.must(r.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &corev1.ConfigMap{}))
				got := r.Get(w.ctx, client.ObjectKey{Namespace: "b", Name: "three"}, &corev1.ConfigMap{})
				listed := r.List(w.ctx, &list, client.InNamespace("b"))
				if c.unknown {
					if got == nil || !strings.Contains(got.Error(), "unknown namespace for the cache") ||
						listed == nil || !strings.Contains(listed.Error(), "unknown namespace for the cache") {
						w.t.Errorf("get: %v, list: %v", got, listed)
					}
				} else if !apierrors.IsNotFound(got) || listed != nil || len(list.Items) != 0 {
					w.t.Errorf("get: %v, list: %v, %d items", got, listed, len(list.Items))
				}
				if name != "left out by the default" {
					w.must(r.Get(w.ctx, client.ObjectKey{Name: "b"}, &corev1.Namespace{}))
				}
			}, three()...)
		})
	}
}

// TestSharedReads: with UnsafeDisableDeepCopy the client returns the cached object itself.
func TestSharedReads(t *testing.T) {
	bothReaders(t, cache.Options{}, func(w *world, r client.Reader) {
		key := client.ObjectKey{Namespace: "a", Name: "one"}
		var one, two corev1.ConfigMap
		w.must(r.Get(w.ctx, key, &one, client.UnsafeDisableDeepCopy))
		w.must(r.Get(w.ctx, key, &two, client.UnsafeDisableDeepCopy))
		one.Data["shared"] = "yes"
		if two.Data["shared"] != "yes" || one.Kind != "" {
			w.t.Errorf("two reads do not share, or the kind was written into the cache: %+v", two)
		}
		w.must(r.Get(w.ctx, key, &two))
		two.Data["shared"] = "no"
		if one.Data["shared"] != "yes" || two.Kind != "ConfigMap" {
			w.t.Error("a read that copies does not")
		}
		delete(one.Data, "shared")
	}, three()...)
}

// TestRemoveInformer: removing an informer affects one representation, and removes its indexes.
func TestRemoveInformer(t *testing.T) {
	bothReaders(t, cache.Options{}, func(w *world, r client.Reader) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		other, err := w.GetInformer(w.ctx, u)
		w.must(err)
		w.must(w.IndexField(w.ctx, &corev1.ConfigMap{}, "kind", func(client.Object) []string { return nil }))
		inf, err := w.GetInformer(w.ctx, &corev1.ConfigMap{})
		w.must(err)
		w.must(w.RemoveInformer(w.ctx, &corev1.ConfigMap{}))
		w.must(w.RemoveInformer(w.ctx, &corev1.ConfigMap{}))
		later(time.Minute)
		if !inf.IsStopped() || other.IsStopped() {
			w.t.Errorf("stopped: %v, the other representation's: %v", inf.IsStopped(), other.IsStopped())
		}
		if err := r.List(w.ctx, &corev1.ConfigMapList{}, client.MatchingFields{"kind": "x"}); err == nil {
			w.t.Error("the index outlives its informer")
		}
		w.must(r.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, u))
		w.must(w.RemoveInformer(w.ctx, &corev1.ConfigMap{}))
	}, three()...)
}

// TestKindsDefinedLater: kinds that are defined later are found, also by an index and a handler.
func TestKindsDefinedLater(t *testing.T) {
	bothCaches(t, cache.Options{DefaultWatchErrorHandler: quiet}, nil, func(w *world) {
		w.start()
		widget, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
		widget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "WidgetList"})
		byColor := func(obj client.Object) []string { return []string{obj.GetLabels()["color"]} }
		if _, err := w.GetInformer(w.ctx, widget); !meta.IsNoMatchError(err) {
			w.t.Errorf("informer of an undefined kind: %v", err)
		}
		if err := w.IndexField(w.ctx, widget, "color", byColor); !meta.IsNoMatchError(err) {
			w.t.Errorf("index of an undefined kind: %v", err)
		}
		w.must(w.direct.Create(w.ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "widgets.example.com"},
			"spec": map[string]any{
				"group": "example.com", "scope": "Namespaced",
				"names": map[string]any{"kind": "Widget", "plural": "widgets"},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true,
					"schema": map[string]any{
						"openAPIV3Schema": map[string]any{"type": "object"},
					},
				}},
			},
		}}))
		later(time.Minute)
		w.must(w.IndexField(w.ctx, widget, "color", byColor))
		widget = widget.DeepCopy() // controller-runtime keeps the one that it was given.
		widget.SetNamespace("a")
		widget.SetName("one")
		widget.SetLabels(map[string]string{"color": "red"})
		w.must(w.direct.Create(w.ctx, widget))
		synctest.Wait()
		w.must(w.List(w.ctx, list, client.MatchingFields{"color": "red"}, client.InNamespace("a")))
		if len(list.Items) != 1 || list.Items[0].GetKind() != "Widget" {
			w.t.Errorf("listed: %v", list.Items)
		}
	}, namespace("a"))
}

// counter is a transport that remembers the requests.
type counter struct {
	http.RoundTripper
	mu   sync.Mutex
	seen []*http.Request
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.seen = append(c.seen, r)
	c.mu.Unlock()
	return c.RoundTripper.RoundTrip(r)
}

func (c *counter) count(selects func(*http.Request) bool) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.seen {
		if selects(r) {
			n++
		}
	}
	return n
}

// TestOptionsOfRequests: Options.HTTPClient sends all requests, Options.Mapper replaces discovery, and Options.Scheme
// maps types to kinds.
func TestOptionsOfRequests(t *testing.T) {
	bothCaches(t, cache.Options{}, nil, func(w *world) {
		known := runtime.NewScheme()
		known.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ConfigMap{}, &corev1.ConfigMapList{})
		metav1.AddToGroupVersion(known, corev1.SchemeGroupVersion)
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
		sent := &counter{RoundTripper: w.api.RESTConfig().Transport}
		nowhere := &rest.Config{Host: w.api.RESTConfig().Host, Transport: &http.Transport{DisableKeepAlives: true}}
		c, err := makers[w.name](nowhere,
			cache.Options{HTTPClient: &http.Client{Transport: sent}, Scheme: known, Mapper: mapper})
		w.must(err)
		w.Cache = c
		w.start()
		w.want("list", w.names(client.InNamespace("a")), "a/one", "a/two")
		of := func(path string) int {
			return sent.count(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, path) })
		}
		if of("/configmaps") == 0 || of("/api") != 0 || of("/api/v1") != 0 {
			w.t.Errorf("%d requests for ConfigMaps, %d for discovery", of("/configmaps"), of("/api")+of("/api/v1"))
		}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"},
			&corev1.Secret{}); !runtime.IsNotRegisteredError(err) {
			w.t.Errorf("a type that the scheme does not know: %v", err)
		}
	}, three()...)
}
