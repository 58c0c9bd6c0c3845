package client_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// Cached reads see the writes of a clientset, in protobuf or JSON, like those of the client: in every representation
// and without waiting for the watch. A lost answer blocks the reads of what it could have changed.
func TestClientsetWritesAreSeen(t *testing.T) {
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			inWorld(t, client.Options{}, func(w *world) {
				w.set(func() { w.lag = time.Hour })
				config, err := client.ObserveWrites(w.api.RESTConfig())
				w.must(err)
				config.ContentType, config.AcceptContentTypes = contentType, contentType
				w.Cluster, err = client.New(config, client.Options{Informers: w.factory})
				w.must(err)
				clientset, err := kubernetes.NewForConfig(config)
				w.must(err)
				w.warm(&corev1.ConfigMapList{})
				for _, obj := range []client.Object{anyMap(), metaMap()} {
					w.must(w.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "old"}, obj))
				}
				synctest.Wait()
				maps := clientset.CoreV1().ConfigMaps("default")
				ctx := client.WithOwner(w.ctx, "me")
				a, err := maps.Create(ctx, configMap("a", "app", "web"), metav1.CreateOptions{})
				w.must(err)
				w.wantNames("a old")
				for _, obj := range []client.Object{&corev1.ConfigMap{}, anyMap(), metaMap()} {
					w.must(w.Get(w.ctx, keyOf(a), obj))
					if obj.GetUID() != a.UID || obj.GetLabels()["app"] != "web" {
						t.Errorf("%T: %+v", obj, obj)
					}
				}
				if err := w.Ready(w.ctx, "me"); !errors.Is(err, client.ErrStale) {
					t.Errorf("ready: %v", err)
				}
				w.must(maps.Delete(ctx, "old", metav1.DeleteOptions{}))
				w.wantNames("a")
				w.set(func() {
					w.after = func(r *gate.Request) gate.Verdict {
						if r.Verb == "create" {
							return gate.Verdict{Action: gate.Drop}
						}
						return gate.Verdict{}
					}
				})
				b := configMap("")
				b.GenerateName = "b-"
				if _, err := maps.Create(ctx, b, metav1.CreateOptions{}); err == nil {
					t.Fatal("the answer was not lost")
				}
				if err := w.List(w.ctx, &corev1.ConfigMapList{}); !errors.Is(err, client.ErrStale) {
					t.Errorf("list of what may be created: %v", err)
				}
				w.must(w.Get(w.ctx, keyOf(a), &corev1.ConfigMap{}))
			}, configMap("old"))
		})
	}
}

// A client with a config for protobuf sends built-in kinds in protobuf and all others in JSON. Its reads return the
// same.
func TestProtobuf(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		config := w.api.RESTConfig()
		config.ContentType = runtime.ContentTypeProtobuf
		c, err := client.New(config, client.Options{})
		w.must(err)
		a := configMap("a", "app", "web")
		w.must(c.Create(w.ctx, a))
		if a.Kind != "ConfigMap" || a.UID == "" {
			t.Errorf("created %+v", a)
		}
		a.Labels["app"] = "db"
		w.must(c.Update(w.ctx, a))
		u := anyMap()
		w.must(c.Get(w.ctx, keyOf(a), u, client.Live))
		if u.GetLabels()["app"] != "db" || u.GetKind() != "ConfigMap" {
			t.Errorf("read %+v", u)
		}
		var list corev1.ConfigMapList
		w.must(c.List(w.ctx, &list, client.InNamespace("default"), client.Live))
		if len(list.Items) != 1 || list.Items[0].Labels["app"] != "db" || list.Items[0].Kind != "ConfigMap" {
			t.Errorf("listed %+v", list)
		}
		w.must(
			c.Patch(w.ctx, a,
				client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"app":"x"}}}`))),
		)
		if a.Labels["app"] != "x" {
			t.Errorf("patched %+v", a)
		}
		w.must(c.Delete(w.ctx, a))
		if err := c.Get(w.ctx, keyOf(a), a); !apierrors.IsNotFound(err) {
			t.Errorf("get: %v", err)
		}
	})
}

// Seen waits until the informers given to TrackInformer show what was written and deleted, also a deletion that finds
// the object gone. It does not wait for a write in doubt.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/util/consistency/consistency.go, EnsureReady and WroteAt
func TestSeen(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		maps, err := informer.For[*corev1.ConfigMap](w.factory)
		w.must(err)
		client.TrackInformer(w.Cluster, corev1.Resource("configmaps"), maps)
		w.must(maps.WaitForSync(w.ctx))
		synctest.Wait()
		w.set(func() { w.lag = time.Second })
		ctx := client.WithOwner(w.ctx, "me")
		seen := func(what string, want bool) {
			t.Helper()
			if err := w.Seen("me"); (err == nil) != want || err != nil && !errors.Is(err, client.ErrStale) {
				t.Errorf("%s: %v, want seen: %v", what, err, want)
			}
		}
		later := func() { time.Sleep(1100 * time.Millisecond) }
		seen("nothing written", true)
		a := configMap("a")
		w.must(w.Create(ctx, a))
		seen("created", false)
		w.must(w.Seen("you"))
		later()
		seen("created and shown", true)
		w.must(w.Update(ctx, a))
		seen("updated without a change", true)
		w.must(w.Delete(ctx, a))
		seen("deleted", false)
		later()
		seen("deleted, and not shown any more", true)

		w.must(w.Create(ctx, configMap("b")))
		later()
		w.must(other(w).Delete(w.ctx, configMap("b")))
		if err := w.Delete(ctx, configMap("b")); !apierrors.IsNotFound(err) {
			t.Errorf("delete: %v", err)
		}
		seen("found to be gone", false)
		later()
		seen("found to be gone, and not shown any more", true)

		w.set(func() {
			w.before = func(r *gate.Request) gate.Verdict {
				if r.Verb == "create" {
					return gate.Verdict{Action: gate.Drop}
				}
				return gate.Verdict{}
			}
		})
		c := configMap("")
		c.GenerateName = "c-"
		if err := w.Create(ctx, c); err == nil {
			t.Fatal("the answer was not lost")
		}
		seen("in doubt", true)
		if err := w.Ready(w.ctx, "me"); !errors.Is(err, client.ErrStale) {
			t.Errorf("ready: %v", err)
		}
	})
}

// TestDryDeletionsOfClientsets: a clientset asks for the dry run of a deletion in the body alone. Reads go on finding
// the object.
func TestDryDeletionsOfClientsets(t *testing.T) {
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		inWorld(t, client.Options{}, func(w *world) {
			config, err := client.ObserveWrites(w.api.RESTConfig())
			w.must(err)
			config.ContentType = contentType
			clientset, err := kubernetes.NewForConfig(config)
			w.must(err)
			c, err := client.New(config, client.Options{Informers: w.factory})
			w.must(err)
			w.Cluster = c
			w.warm(&corev1.ConfigMapList{})
			maps, dry := clientset.CoreV1().ConfigMaps("default"), []string{metav1.DryRunAll}
			w.must(maps.Delete(w.ctx, "a", metav1.DeleteOptions{DryRun: dry}))
			w.wantNames("a b")
			w.must(maps.DeleteCollection(w.ctx, metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{}))
			w.wantNames("a b")
			if n := w.calls("list"); n != 0 {
				t.Errorf("%s: the server was asked %d times", contentType, n)
			}
			w.must(maps.Delete(w.ctx, "a", metav1.DeleteOptions{}))
			w.wantNames("b")
		}, configMap("a"), configMap("b"))
	}
}
