package manager_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/metrics"
)

// TestSchemeAndClient checks that the client receives its options, and that options that contradict those of the
// manager are rejected.
func TestSchemeAndClient(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(config, manager.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if m.GetScheme() != scheme || m.Informers().Options().Scheme != scheme || m.GetClient().Scheme() != scheme {
		t.Error("the scheme does not reach the informers and the client")
	}
	if _, err := manager.New(config, manager.Options{Client: client.Options{Scheme: clientscheme.Scheme}}); err != nil {
		t.Errorf("the scheme that is the default: %v", err)
	}
	other, factory := runtime.NewScheme(), m.Informers()
	for text, o := range map[string]manager.Options{
		"Client.Informers is set": {Client: client.Options{Informers: factory}},
		"set Options.Caches":      {Client: client.Options{Caches: []client.CacheOf{{Object: &corev1.Pod{}}}}},
		"Informers.Scheme differ": {Scheme: scheme, Informers: informer.FactoryOptions{Scheme: other}},
		"Client.Scheme differs":   {Scheme: scheme, Client: client.Options{Scheme: other}},
	} {
		if _, err := manager.New(config, o); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("want an error with %q, got %v", text, err)
		}
	}
}

// TestWritesOfTheClient checks that the client receives the options for writes.
func TestWritesOfTheClient(t *testing.T) {
	w := newWorld(t)
	o := manager.Options{Client: client.Options{FieldManager: "mine"}}
	name := metav1.ObjectMeta{Namespace: "default", Name: "a"}
	kept := &corev1.ConfigMap{ObjectMeta: name, Data: map[string]string{"k": "v"}}
	tried := kept.DeepCopy()
	tried.Name = "b"
	if err := w.manager(t, o).GetClient().Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	if by := kept.ManagedFields; len(by) != 1 || by[0].Manager != "mine" {
		t.Errorf("managed fields: %+v", by)
	}
	o.Client.DryRun = true
	m := w.manager(t, o)
	if err := m.GetClient().Create(t.Context(), tried); err != nil || tried.UID == "" {
		t.Errorf("a dry run: %v, %+v", err, tried)
	}
	err := m.GetAPIReader().Get(t.Context(), client.ObjectKeyFromObject(tried), tried)
	if !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run: %v, want NotFound", err)
	}
}

// TestUncachedKinds reads a kind that has no cache while no informer runs.
func TestUncachedKinds(t *testing.T) {
	w := newWorld(t)
	m := w.manager(t, manager.Options{Client: client.Options{Uncached: []client.Object{&corev1.Secret{}}}})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key"}}
	if err := m.GetClient().Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := m.GetClient().Get(t.Context(), client.ObjectKeyFromObject(secret), secret.DeepCopy()); err != nil {
		t.Error(err)
	}
	if n := len(m.Informers().Health()); n != 0 {
		t.Errorf("%d informers", n)
	}
}

// TestExtraHandlers checks that extra handlers are served beside the metrics.
func TestExtraHandlers(t *testing.T) {
	w := newWorld(t)
	m := w.manager(t, manager.Options{MetricsAddr: "127.0.0.1:0", Metrics: metrics.New()})
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	if err := m.AddMetricsServerExtraHandler("/hello", hello); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/hello", "", "{"} {
		if err := m.AddMetricsServerExtraHandler(path, hello); err == nil {
			t.Errorf("the path %q is accepted", path)
		}
	}
	if err := m.AddMetricsServerExtraHandler("/nil", nil); err == nil {
		t.Error("no handler is accepted")
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	if code, body := fetch(t, m.MetricsAddr, "/hello"); code != 200 || body != "hello" {
		t.Errorf("%d %q", code, body)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
