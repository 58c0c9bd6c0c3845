package client_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/auth"
)

func TestUncacheGivesTheInformerBack(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		w.must(w.IndexField(w.ctx, &corev1.ConfigMap{}, "spec.x", func(client.Object) []string { return nil }))
		w.must(w.Uncache(&corev1.ConfigMap{}))
		w.must(w.Uncache(&corev1.ConfigMap{}))
		if n := len(w.factory.Stats()); n != 0 {
			t.Errorf("%d informers are left", n)
		}
		w.must(w.Create(w.ctx, configMap("while-uncached")))
		w.wantNames("while-uncached")
		w.must(w.IndexField(w.ctx, &corev1.ConfigMap{}, "spec.x", func(client.Object) []string { return nil }))
	})
}

// A cache that was dropped is freed, although it has not shown a write, and the server has contradicted it.
func TestUncacheFreesTheCache(t *testing.T) {
	held := func(w *world) weak.Pointer[corev1.ConfigMap] {
		inf, err := informer.For[*corev1.ConfigMap](w.factory)
		w.must(err)
		defer informer.Release(inf)
		obj, found := inf.Get("default", "a")
		if !found {
			w.t.Fatal("the cache does not hold the object")
		}
		return weak.Make(obj)
	}
	for name, leave := range map[string]func(w *world){
		"unused": func(w *world) {},
		"write that it has not shown": func(w *world) {
			w.must(w.Create(w.ctx, configMap("b")))
		},
		"write that was read": func(w *world) {
			w.must(w.Create(w.ctx, configMap("b")))
			w.must(w.Get(w.ctx, keyOf(configMap("b")), &corev1.ConfigMap{}))
		},
		"contradiction": func(w *world) {
			w.must(w.Delete(w.ctx, configMap("a")))
			if err := w.Delete(w.ctx, configMap("a")); !apierrors.IsNotFound(err) {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, client.Options{}, func(w *world) {
				w.set(func() { w.lag = time.Minute })
				w.warm(&corev1.ConfigMapList{})
				obj := held(w)
				leave(w)
				w.must(w.Uncache(&corev1.ConfigMap{}))
				synctest.Wait()
				for range 5 {
					runtime.GC()
					time.Sleep(time.Millisecond)
				}
				if obj.Value() != nil {
					t.Error("the cache is still in memory")
				}
			}, configMap("a"))
		})
	}
}

func TestCacheForRestrictsWhatCachesDoesNotMention(t *testing.T) {
	o := client.Options{
		Caches: []client.CacheOf{{Object: &corev1.Secret{}}},
		CacheFor: func(kind schema.GroupVersionKind, namespaced bool) informer.InformerOptions {
			if !namespaced {
				t.Errorf("%s is said to be cluster-scoped", kind)
			}
			return informer.InformerOptions{LabelSelector: "app=web"}
		},
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "unlabelled"}}
	inWorld(t, o, func(w *world) {
		w.wantNames("in")
		var secrets corev1.SecretList
		w.must(w.List(w.ctx, &secrets))
		if len(secrets.Items) != 1 {
			t.Errorf("%d secrets, want the unlabelled one", len(secrets.Items))
		}
	}, configMap("in", "app", "web"), configMap("out"), secret)
}

// A cache may be dropped while other goroutines look into all caches, as a deletion does.
func TestUncacheWhileOthersLook(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 100 {
				w.must(w.Get(w.ctx, keyOf(configMap("a")), anyMap()))
				w.must(w.Uncache(anyMap()))
			}
		})
		for range 100 {
			w.must(w.Get(w.ctx, keyOf(configMap("a")), &corev1.ConfigMap{}))
			if err := w.Delete(w.ctx, configMap("none")); !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		wg.Wait()
	}, configMap("a"))
}

// TestIndexesOfACacheThatNobodyHasRead: the indexes are created with the cache, for callers that read from the
// informer, and dropped with it.
func TestIndexesOfACacheThatNobodyHasRead(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		byName := func(obj client.Object) []string { return []string{obj.GetName()} }
		w.must(w.IndexField(w.ctx, &corev1.ConfigMap{}, "name", byName))
		w.must(w.Uncache(&corev1.ConfigMap{}))
		w.must(w.IndexField(w.ctx, &corev1.ConfigMap{}, "name", byName))
		w.must(w.Cache(w.ctx, &corev1.ConfigMap{}))
		inf, err := informer.For[*corev1.ConfigMap](w.factory)
		w.must(err)
		w.must(inf.WaitForSync(w.ctx))
		if found, err := inf.ByIndex("name", "a"); err != nil || len(found) != 1 {
			t.Errorf("%d found, %v", len(found), err)
		}
	}, configMap("a"))
}

// TestThrough: clients of two users see each other's writes, and each sends requests as its own user.
func TestThrough(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = time.Minute })
		w.warm(&corev1.ConfigMapList{})
		other, err := w.Through(w.api.RESTConfigFor(auth.User{Name: "jane", Groups: []string{"system:masters"}}))
		w.must(err)
		w.must(w.Create(w.ctx, configMap("mine")))
		w.must(other.Get(w.ctx, keyOf(configMap("mine")), &corev1.ConfigMap{}))
		w.must(other.Create(w.ctx, configMap("theirs")))
		w.wantNames("mine theirs")
		if writes := w.api.Audit().Writes(); len(writes) != 2 || writes[0].User == writes[1].User ||
			writes[1].User != "jane" {
			t.Errorf("writes %v", writes)
		}
	})
}
