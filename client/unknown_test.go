package client_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// Of each verb the answer is lost, once after it took effect, once before. Nobody reads what it could have changed,
// until a list begun after the server's request timeout tells which it was; all else is read as ever, and no other
// request is made.
func TestLostAnswers(t *testing.T) {
	verbs := map[string]struct {
		write func(w *world) error
		// want is what the object's label "v" is when the write took effect; "" that there is no object.
		want string
	}{
		"create": {func(w *world) error { return w.Create(w.ctx, configMap("new", "v", "2")) }, "2"},
		"update": {func(w *world) error { return w.Update(w.ctx, configMap("a", "v", "2")) }, "2"},
		"patch": {func(w *world) error {
			return w.Patch(w.ctx, configMap("a"),
				client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"v":"2"}}}`)))
		}, "2"},
		"delete": {func(w *world) error { return w.Delete(w.ctx, configMap("a")) }, ""},
	}
	for verb, c := range verbs {
		for _, applied := range []bool{true, false} {
			t.Run(verb+map[bool]string{true: " applied", false: " not applied"}[applied], func(t *testing.T) {
				key, want := keyOf(configMap("a")), "1"
				if verb == "create" {
					key, want = keyOf(configMap("new")), ""
				}
				if applied {
					want = c.want
				}
				inWorld(t, client.Options{}, func(w *world) {
					w.warm(&corev1.ConfigMapList{})
					lose := func(r *gate.Request) gate.Verdict {
						if r.Mutates() {
							return gate.Verdict{Action: gate.Drop}
						}
						return gate.Verdict{}
					}
					w.set(func() {
						if applied {
							w.after = lose
						} else {
							w.before = lose
						}
					})
					if err := c.write(w); err == nil {
						t.Fatal("the answer was not lost")
					}
					w.set(func() { w.before, w.after = nil, nil })
					w.api.Audit().Reset()
					for range 59 {
						if err := w.Get(w.ctx, key, &corev1.ConfigMap{}); !errors.Is(err, client.ErrStale) {
							t.Fatalf("read %v", err)
						}
						w.must(w.Get(w.ctx, keyOf(configMap("b")), &corev1.ConfigMap{}))
						time.Sleep(time.Second)
					}
					time.Sleep(2 * time.Second)
					var got corev1.ConfigMap
					if err := client.IgnoreNotFound(w.Get(w.ctx, key, &got)); err != nil || got.Labels["v"] != want {
						t.Errorf("read %v, %v; want %q", got.Labels, err, want)
					}
					if n := w.calls("get", "list", "watch"); n != 1 {
						t.Errorf("%d reads of the server", n)
					}
				}, configMap("a", "v", "1"), configMap("b"))
			})
		}
	}
}

// tripper is a function as a transport.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A write whose goroutine panics on its way, after the server had it, is one whose answer was lost: the panic goes on
// to whoever recovers, and the books do not wait for an answer that never comes.
func TestPanicInAWrite(t *testing.T) {
	var armed atomic.Bool
	s := setup{wrap: func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if r.Method == http.MethodPost && armed.Load() {
				panic("on its way")
			}
			return answer, err
		})
	}}
	s.run(t, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		armed.Store(true)
		func() {
			defer func() {
				if recover() != "on its way" {
					t.Error("the panic was swallowed")
				}
			}()
			_ = w.Create(client.WithOwner(w.ctx, "me"), configMap("a"))
		}()
		var stale *client.StaleError
		if err := w.Get(w.ctx, keyOf(configMap("a")), &corev1.ConfigMap{}); !errors.As(err, &stale) ||
			stale.Cause == nil {
			t.Errorf("get: %v", err)
		}
		if err := w.Ready(w.ctx, "me"); !errors.Is(err, client.ErrStale) {
			t.Errorf("ready: %v", err)
		}
		time.Sleep(61 * time.Second)
		w.must(w.Get(w.ctx, keyOf(configMap("a")), &corev1.ConfigMap{}))
		w.must(w.Ready(w.ctx, "me"))
	})
}

// A server that says it is too busy is asked again when it said to; nothing was applied, so nothing is unknown, and
// the object is created once. One that stays busy is given up, and so is one whose caller does.
func TestTooBusy(t *testing.T) {
	busy := func(times int, asked *int) func(r *gate.Request) gate.Verdict {
		return func(r *gate.Request) gate.Verdict {
			if r.Verb != "create" {
				return gate.Verdict{}
			}
			if *asked++; *asked <= times {
				return gate.FailWith(apierrors.NewTooManyRequests("busy", 3))
			}
			return gate.Verdict{}
		}
	}
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		asked, start := 0, time.Now()
		w.set(func() { w.before = busy(4, &asked) })
		w.must(w.Create(w.ctx, configMap("a")))
		if took := time.Since(start); asked != 5 || took != 12*time.Second {
			t.Errorf("asked %d times in %s", asked, took)
		}
		w.wantNames("a")

		asked = 0
		w.set(func() { w.before = busy(1000, &asked) })
		if err := w.Create(w.ctx, configMap("b")); !apierrors.IsTooManyRequests(err) || asked != 11 {
			t.Errorf("asked %d times: %v", asked, err)
		}
		w.wantNames("a") // Known not to be there.

		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		defer cancel()
		asked, start = 0, time.Now()
		if err := w.Create(ctx, configMap("c")); !apierrors.IsTooManyRequests(err) || asked != 4 ||
			time.Since(start) != 10*time.Second {
			t.Errorf("asked %d times in %s: %v", asked, time.Since(start), err)
		}
		w.wantNames("a")
	})
}

// A cache of two namespaces: each has a watch and a watermark of its own. What is written in the one that lags is
// seen, in lists of it and of both; what is written in a third neither appears nor blocks.
func TestCacheOfSeveralNamespaces(t *testing.T) {
	in := func(namespace, name string) *corev1.ConfigMap {
		m := configMap(name, "app", "web")
		m.Namespace = namespace
		return m
	}
	o := client.Options{Caches: []client.CacheOf{{Object: &corev1.ConfigMap{}}}}
	o.Caches[0].Informer.Namespaces = []string{"default", "kube-system"}
	inWorld(t, o, func(w *world) {
		w.set(func() { w.lag = time.Hour })
		w.warm(&corev1.ConfigMapList{})
		web := client.MatchingLabels{"app": "web"}
		for _, namespace := range []string{"default", "kube-system", "kube-public"} {
			w.must(w.Create(client.WithOwner(w.ctx, namespace), in(namespace, "a")))
		}
		w.wantNames("a a", web)
		w.wantNames("a", web, client.InNamespace("kube-system"))
		w.wantNames("", web, client.InNamespace("kube-public"))
		if err := w.Get(w.ctx, keyOf(in("kube-public", "a")), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("get of what the cache does not follow: %v", err)
		}
		w.must(w.Ready(w.ctx, "kube-public"))
		if err := w.Ready(w.ctx, "default"); !errors.Is(err, client.ErrStale) {
			t.Errorf("ready: %v", err)
		}
		w.must(w.Delete(w.ctx, in("default", "a")))
		w.wantNames("a", web)
		w.must(w.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace("kube-public"), web))
		w.wantNames("a", web)
		time.Sleep(2 * time.Hour)
		w.wantNames("a", web)
		w.must(w.Ready(w.ctx, "default"))
		synctest.Wait()
	})
}
