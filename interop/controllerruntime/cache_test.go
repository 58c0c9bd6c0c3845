package controllerruntime_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// three has objects of three namespaces, one of them labelled.
func three() []runtime.Object {
	return []runtime.Object{
		namespace("a"), namespace("b"), namespace("c"),
		configMap("a", "one", map[string]string{"app": "web"}), configMap("a", "two", nil),
		configMap("b", "three", nil), configMap("c", "four", map[string]string{"app": "web"}),
	}
}

var webOnly = labels.SelectorFromSet(labels.Set{"app": "web"})

func TestReads(t *testing.T) {
	bothCaches(t, cache.Options{}, nil, func(w *world) {
		var m corev1.ConfigMap
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &m); !errors.As(err,
			new(*cache.ErrCacheNotStarted)) {
			t.Errorf("get before start: %v", err)
		}
		w.start()
		w.must(w.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &m))
		if m.Data["kind"] != "one" || m.Kind != "ConfigMap" || m.APIVersion != "v1" || m.ResourceVersion == "" {
			t.Errorf("get: %+v", m)
		}
		m.Data["kind"] = "changed"
		var again corev1.ConfigMap
		w.must(w.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &again))
		if again.Data["kind"] != "one" {
			t.Error("get does not return a copy")
		}
		err := w.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "none"}, &m)
		if !apierrors.IsNotFound(err) || err.Error() != `ConfigMap "none" not found` {
			t.Errorf("get of a missing object: %v", err)
		}
		w.want("all", w.names(), "a/one", "a/two", "b/three", "c/four")
		w.want("namespace", w.names(client.InNamespace("a")), "a/one", "a/two")
		w.want("labels", w.names(client.MatchingLabels{"app": "web"}), "a/one", "c/four")
		w.want("both", w.names(client.InNamespace("a"), client.MatchingLabels{"app": "web"}), "a/one")
		if got := w.names(client.Limit(3)); len(got) != 3 {
			t.Errorf("limited to 3: %v", got)
		}
		if err := w.List(w.ctx, &corev1.ConfigMapList{}, client.Continue("x")); err == nil ||
			!strings.Contains(err.Error(), "continue list option is not supported") {
			t.Errorf("continue: %v", err)
		}
		var nodes corev1.NodeList
		w.must(w.List(w.ctx, &nodes))
		if nodes.Continue != "continue-not-supported" {
			t.Errorf("continue of a list: %q", nodes.Continue)
		}
		var ns corev1.Namespace
		w.must(w.Get(w.ctx, client.ObjectKey{Namespace: "ignored", Name: "a"}, &ns))
		// Other representations.
		u := &unstructured.UnstructuredList{}
		u.SetAPIVersion("v1")
		u.SetKind("ConfigMapList")
		w.must(w.List(w.ctx, u, client.InNamespace("b")))
		if len(u.Items) != 1 || u.Items[0].GetName() != "three" || u.Items[0].GetKind() != "ConfigMap" {
			t.Errorf("unstructured: %+v", u.Items)
		}
		w.must(w.direct.Create(w.ctx, configMap("c", "five", nil)))
		synctest.Wait()
		w.want("after a change", w.names(client.InNamespace("c")), "c/four", "c/five")
	}, three()...)
}

// TestManagedFields: reads and handlers get the objects that the server sent, in all representations. Those of the lean
// cache differ in their managed fields alone. The test runs outside a bubble: controller-runtime's watch of metadata
// leaves a goroutine behind.
func TestManagedFields(t *testing.T) {
	for name, newCache := range makers {
		t.Run(name, func(t *testing.T) {
			api := localapi.NewTest(t, namespace("a"))
			direct, err1 := client.New(api.RESTConfig(), client.Options{})
			c, err2 := newCache(api.RESTConfig(), cache.Options{})
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			if err := direct.Create(t.Context(), configMap("a", "one", nil)); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			defer wg.Wait()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			wg.Go(func() { _ = c.Start(ctx) })
			u, m := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			m.SetGroupVersionKind(u.GroupVersionKind())
			for _, obj := range []client.Object{&corev1.ConfigMap{}, u, m} {
				if !c.WaitForCacheSync(ctx) {
					t.Fatal("not synced")
				}
				if err := c.Get(ctx, client.ObjectKey{Namespace: "a", Name: "one"}, obj); err != nil {
					t.Fatal(err)
				}
				want := obj.DeepCopyObject().(client.Object)
				if err := direct.Get(ctx, client.ObjectKeyFromObject(obj), want); err != nil {
					t.Fatal(err)
				}
				if n := len(want.GetManagedFields()); n == 0 {
					t.Fatalf("%T: the server has no managed fields", obj)
				}
				if strings.HasSuffix(name, "lean") {
					want.SetManagedFields(nil)
				}
				handed := make(chan any, 1)
				inf, err := c.GetInformer(ctx, obj)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := inf.AddEventHandler(
					toolscache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { handed <- obj }},
				); err != nil {
					t.Fatal(err)
				}
				if got := <-handed; !reflect.DeepEqual(got, want) {
					t.Errorf("a handler is given\n%v\nwant\n%v", got, want)
				}
				// A cached typed object that is read has its kind.
				want.GetObjectKind().SetGroupVersionKind(u.GroupVersionKind())
				if !reflect.DeepEqual(obj, want) {
					t.Errorf("read\n%v\nwant\n%v", obj, want)
				}
			}
		})
	}
}

// TestMetadata runs outside a bubble: controller-runtime's watch of metadata leaves a goroutine behind.
func TestMetadata(t *testing.T) {
	for name, newCache := range makers {
		t.Run(name, func(t *testing.T) {
			api := localapi.NewTest(t, three()...)
			c, err := newCache(api.RESTConfig(), cache.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			defer wg.Wait()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			wg.Go(func() { _ = c.Start(ctx) })
			if !c.WaitForCacheSync(ctx) {
				t.Fatal("not synced")
			}
			p := &metav1.PartialObjectMetadata{}
			p.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			if err := c.Get(ctx, client.ObjectKey{Namespace: "b", Name: "three"}, p); err != nil ||
				p.Kind != "ConfigMap" || p.Name != "three" {
				t.Errorf("get: %+v, %v", p, err)
			}
			all := &metav1.PartialObjectMetadataList{}
			all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
			if err := c.List(ctx, all, client.MatchingLabels{"app": "web"}); err != nil || len(all.Items) != 2 ||
				all.Items[0].Kind != "ConfigMap" {
				t.Errorf("list: %+v, %v", all.Items, err)
			}
		})
	}
}

func TestIndexes(t *testing.T) {
	bothCaches(t,
		cache.Options{
			DefaultNamespaces: map[string]cache.Config{
				"a": {},
				"b": {LabelSelector: labels.Everything(), FieldSelector: fields.Everything()},
				"c": {LabelSelector: webOnly},
			},
		}, nil, func(w *world) {
			extract := func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["kind"]} }
			w.must(w.IndexField(w.ctx, &corev1.ConfigMap{}, "data.kind", extract))
			w.must(
				w.IndexField(w.ctx, &corev1.ConfigMap{}, "name",
					func(obj client.Object) []string { return []string{obj.GetName()} }),
			)
			if err := w.IndexField(w.ctx, &corev1.ConfigMap{}, "data.kind", extract); err == nil ||
				!strings.Contains(err.Error(), "indexer conflict") {
				t.Errorf("an index made twice: %v", err)
			}
			w.start()
			w.want("index", w.names(client.MatchingFields{"data.kind": "two"}), "a/two")
			w.want("index in a namespace", w.names(client.MatchingFields{"data.kind": "two"}, client.InNamespace("b")))
			w.want("two indexes", w.names(client.MatchingFields{"data.kind": "three", "name": "three"}), "b/three")
			w.want("two indexes, nothing in both", w.names(client.MatchingFields{"data.kind": "three", "name": "one"}))
			w.want("index and labels",
				w.names(client.MatchingFields{"data.kind": "one"}, client.MatchingLabels{"app": "x"}))
			if err := w.List(w.ctx, &corev1.ConfigMapList{}, client.MatchingFields{"data.none": "x"}); err == nil ||
				!strings.Contains(err.Error(), "does not exist") {
				t.Errorf("no index: %v", err)
			}
			inexact := client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("name", "one")}
			if err := w.List(w.ctx, &corev1.ConfigMapList{}, inexact); err == nil ||
				err.Error() != "non-exact field matches are not supported by the cache" {
				t.Errorf("inexact: %v", err)
			}
			if err := w.List(w.ctx, &corev1.ConfigMapList{}, client.InNamespace("default")); err == nil ||
				!strings.Contains(err.Error(), "unknown namespace for the cache") {
				t.Errorf("namespace that is not cached: %v", err)
			}
			if err := w.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "x"},
				&corev1.ConfigMap{}); err == nil || !strings.Contains(err.Error(), "unknown namespace for the cache") {
				t.Errorf("namespace that is not cached: %v", err)
			}
			var ns corev1.NamespaceList
			w.must(w.List(w.ctx, &ns)) // Cluster-scoped kinds are not concerned.
			if len(ns.Items) < 3 {
				t.Errorf("%d namespaces", len(ns.Items))
			}
		}, three()...)
}

// TestSelection checks every place that options come from, and their precedence.
func TestSelection(t *testing.T) {
	all := []string{"a/one", "a/two", "b/three", "c/four"}
	marked := func(mark string) toolscache.TransformFunc {
		return func(obj any) (any, error) {
			obj.(metav1.Object).SetAnnotations(map[string]string{"mark": mark})
			return obj, nil
		}
	}
	object := &corev1.ConfigMap{}
	for name, c := range map[string]struct {
		o     cache.Options
		want  []string
		marks string
	}{
		"nothing":        {cache.Options{}, all, ""},
		"default labels": {cache.Options{DefaultLabelSelector: webOnly}, []string{"a/one", "c/four"}, ""},
		"default fields": {
			cache.Options{DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", "two")},
			[]string{"a/two"},
			"",
		},
		"namespace by field": {
			cache.Options{DefaultFieldSelector: fields.OneTermEqualSelector("metadata.namespace", "a")},
			[]string{"a/one", "a/two"},
			"",
		},
		"default namespaces": {
			cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}},
			[]string{"a/one", "a/two", "b/three"},
			"",
		},
		"namespace's labels": {
			cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {LabelSelector: webOnly}, "b": {}}},
			[]string{"a/one", "b/three"},
			"",
		},
		"all but some": {
			cache.Options{
				DefaultNamespaces: map[string]cache.Config{"a": {LabelSelector: webOnly}, cache.AllNamespaces: {}},
			}, []string{"a/one", "b/three", "c/four"}, "",
		},
		"the kind's labels": {
			cache.Options{ByObject: map[client.Object]cache.ByObject{object: {Label: webOnly}}},
			[]string{"a/one", "c/four"},
			"",
		},
		"the kind's before default": {
			cache.Options{
				DefaultLabelSelector: labels.Nothing(),
				ByObject:             map[client.Object]cache.ByObject{object: {Label: webOnly}},
			}, []string{"a/one", "c/four"}, "",
		},
		"the kind's field": {
			cache.Options{
				ByObject: map[client.Object]cache.ByObject{
					object: {Field: fields.OneTermEqualSelector("metadata.name", "one")},
				},
			}, []string{"a/one"}, "",
		},
		"the kind's namespaces": {
			cache.Options{
				DefaultNamespaces: map[string]cache.Config{"a": {}},
				ByObject: map[client.Object]cache.ByObject{
					object: {Namespaces: map[string]cache.Config{"b": {}, "c": {}}},
				},
			}, []string{"b/three", "c/four"}, "",
		},
		"no namespaces for the kind": {
			cache.Options{
				DefaultNamespaces: map[string]cache.Config{"a": {}},
				ByObject:          map[client.Object]cache.ByObject{object: {Namespaces: map[string]cache.Config{}}},
			}, all, "",
		},
		"namespaces with kind labels": {
			cache.Options{
				DefaultNamespaces: map[string]cache.Config{"a": {}, "c": {LabelSelector: labels.Everything()}},
				ByObject: map[client.Object]cache.ByObject{
					object: {Label: labels.SelectorFromSet(labels.Set{"app": "none"})},
				},
			}, []string{"c/four"}, "",
		},
		"default transform": {cache.Options{DefaultTransform: marked("default")}, all, "default"},
		"the kind's transform": {
			cache.Options{
				DefaultTransform: marked("default"),
				ByObject:         map[client.Object]cache.ByObject{object: {Transform: marked("kind")}},
			}, all, "kind",
		},
		"namespace's transform": {
			cache.Options{
				DefaultNamespaces: map[string]cache.Config{"b": {Transform: marked("b")}},
				ByObject:          map[client.Object]cache.ByObject{object: {Transform: marked("kind")}},
			},
			[]string{"b/three"},
			"b",
		},
		"another kind's": {
			cache.Options{
				ByObject: map[client.Object]cache.ByObject{
					&corev1.Secret{}: {Label: labels.Nothing(), Transform: marked("x")},
				},
			}, all, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothCaches(t, c.o, nil, func(w *world) {
				w.start()
				w.want("list", w.names(), c.want...)
				var list corev1.ConfigMapList
				w.must(w.List(w.ctx, &list))
				for _, m := range list.Items {
					if m.Annotations["mark"] != c.marks {
						w.t.Errorf("%s is marked %q, want %q", m.Name, m.Annotations["mark"], c.marks)
					}
				}
			}, three()...)
		})
	}
}

// TestWithoutBookmarks: our cache requests bookmarks even if they are disabled. controller-runtime's cache never syncs
// without them from a server that streams lists, because a bookmark ends the list.
func TestWithoutBookmarks(t *testing.T) {
	object := &corev1.ConfigMap{}
	for name, o := range map[string]cache.Options{
		"all":            {DefaultEnableWatchBookmarks: new(false)},
		"of the kind":    {ByObject: map[client.Object]cache.ByObject{object: {EnableWatchBookmarks: new(false)}}},
		"of a namespace": {DefaultNamespaces: map[string]cache.Config{"b": {EnableWatchBookmarks: new(false)}}},
	} {
		t.Run(name, func(t *testing.T) {
			bothCaches(t, o, nil, func(w *world) {
				w.start()
				ctx, cancel := context.WithTimeout(w.ctx, time.Hour)
				defer cancel()
				var list corev1.ConfigMapList
				err := w.List(ctx, &list, client.InNamespace("b"))
				if w.name == "controller-runtime" {
					if !apierrors.IsTimeout(err) {
						w.t.Errorf("%s: %v", changed, err)
					}
					return
				}
				if err != nil || len(list.Items) != 1 {
					w.t.Errorf("%d items, %v", len(list.Items), err)
				}
			}, three()...)
		})
	}
}

func TestOptionsRefused(t *testing.T) {
	bothCaches(t, cache.Options{}, nil, func(w *world) {
		o := cache.Options{
			ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Namespaces: map[string]cache.Config{"a": {}}}},
		}
		if _, err := makers[w.name](w.api.RESTConfig(), o); err == nil || !strings.Contains(err.Error(), "Namespaces") {
			w.t.Errorf("namespaces for nodes: %v", err)
		}
		o = cache.Options{ByObject: map[client.Object]cache.ByObject{&struct{ corev1.ConfigMap }{}: {}}}
		if _, err := makers[w.name](w.api.RESTConfig(), o); err == nil {
			w.t.Error("a type that the scheme does not know is taken")
		}
	})
}

func TestReaderFailOnMissingInformer(t *testing.T) {
	bothCaches(t, cache.Options{ReaderFailOnMissingInformer: true}, nil, func(w *world) {
		w.start()
		if err := w.List(w.ctx, &corev1.ConfigMapList{}); !errors.As(err, new(*cache.ErrResourceNotCached)) {
			w.t.Errorf("list of an uncached kind: %v", err)
		}
		_, err := w.GetInformer(w.ctx, &corev1.ConfigMap{})
		w.must(err)
		w.want("list", w.names(client.InNamespace("a")), "a/one", "a/two")
	}, three()...)
}

func TestWithoutCopies(t *testing.T) {
	for _, o := range []cache.Options{
		{DefaultUnsafeDisableDeepCopy: new(true)},
		{ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {UnsafeDisableDeepCopy: new(true)}}},
		{DefaultNamespaces: map[string]cache.Config{"a": {UnsafeDisableDeepCopy: new(true)}}},
	} {
		bothCaches(t, o, nil, func(w *world) {
			w.start()
			var one, two corev1.ConfigMap
			w.must(w.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &one))
			w.must(w.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &two))
			one.Data["shared"] = "yes"
			if two.Data["shared"] != "yes" {
				w.t.Error("two reads do not share")
			}
		}, three()...)
	}
	bothCaches(t, cache.Options{}, nil, func(w *world) {
		w.start()
		var one, two corev1.ConfigMapList
		w.must(w.List(w.ctx, &one, client.InNamespace("b"), client.UnsafeDisableDeepCopy))
		w.must(w.List(w.ctx, &two, client.InNamespace("b"), client.UnsafeDisableDeepCopy))
		one.Items[0].Data["shared"] = "yes"
		if two.Items[0].Data["shared"] != "yes" {
			w.t.Error("two lists do not share")
		}
	}, three()...)
}

// TestForbidden: a caller that waits gets the server's error, and the cache recovers.
func TestForbidden(t *testing.T) {
	var told []error
	forbid := gate.Funcs{OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
		if r.Resource == "configmaps" && (r.Verb == "list" || r.Verb == "watch") && len(told) < 3 {
			return gate.FailWith(
				apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no right to list")),
			)
		}
		return gate.Verdict{}
	}}
	o := cache.Options{
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			told = append(told, err)
		},
	}
	bothCaches(t, o, forbid, func(w *world) {
		told = nil
		w.start()
		ctx, cancel := context.WithTimeout(w.ctx, time.Millisecond)
		defer cancel()
		err := w.List(ctx, &corev1.ConfigMapList{})
		if !apierrors.IsTimeout(err) {
			w.t.Errorf("list: %v", err)
		}
		if w.ours() {
			if !strings.Contains(err.Error(), "cannot list configmaps at the cluster scope: forbidden") {
				w.t.Errorf("the error does not say why: %v", err)
			}
			if h := w.Cache.(*controllerruntime.Cache).Health(); len(h) != 1 || h[0].Err == nil {
				w.t.Errorf("health: %+v", h)
			}
		}
		time.Sleep(10 * time.Minute)
		w.want("after the right was given", w.names(client.InNamespace("a")), "a/one", "a/two")
		if len(told) != 3 || !apierrors.IsForbidden(told[0]) {
			w.t.Errorf("the watch error handler got %v", told)
		}
	}, three()...)
}

// TestCacheStartedTwice: the second start returns controller-runtime's error.
func TestCacheStartedTwice(t *testing.T) {
	bothCaches(t, cache.Options{}, nil, func(w *world) {
		w.start()
		if err := w.Start(w.ctx); err == nil || !strings.Contains(err.Error(), "informer already started") {
			w.t.Errorf("a second start: %v", err)
		}
	})
}
