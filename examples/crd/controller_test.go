package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/internal/roletest"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/manager/rbac"
)

// zone is a name server.
type zone struct {
	mu     sync.Mutex
	names  map[string]string
	broken error
}

func (z *zone) Set(_ context.Context, domain, target string) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.broken == nil {
		z.names[domain] = target
	}
	return z.broken
}

func (z *zone) Remove(_ context.Context, domain, target string) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.broken == nil && z.names[domain] == target {
		delete(z.names, domain)
	}
	return z.broken
}

func (z *zone) breaks(err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.broken = err
}

func (z *zone) String() string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return fmt.Sprint(maps.Clone(z.names))
}

//go:embed examples.flyball.dev_websites.yaml
var crd []byte

// requests records what the controller asks the server for.
var requests = rbac.NewRecorder()

func TestMain(m *testing.M) { os.Exit(roletest.Main(m, "role.yaml", requests, os.Stdout)) }

// define makes the server know Websites, from the very file that a cluster is told with.
func define(ctx context.Context, c *client.Cluster) error {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(crd, &u.Object); err != nil {
		return err
	}
	return c.Create(ctx, u)
}

// world is a server, a name server, and the manager at work.
type world struct {
	t     *testing.T
	api   *localapi.Server
	names *zone
	them  *client.Cluster
}

func run(t *testing.T, test func(ctx context.Context, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		api, err := localapi.New(localapi.Options{Audit: &audit.Log{}})
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		scheme := runtime.NewScheme()
		addToScheme(scheme)
		if err := corev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		them, err := client.New(api.RESTConfig(), client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		if err := define(ctx, them); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // It is established.
		names := &zone{names: map[string]string{}}
		config := api.RESTConfig()
		config.Wrap(requests.Wrap)
		mgr, err := newManager(ctx, config, names)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- mgr.Run(ctx) }()
		test(ctx, &world{t, api, names, them})
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func website(name, domain string) *Website {
	return &Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       WebsiteSpec{Domain: domain, HTML: "hello"},
	}
}

// want waits, and compares a Website's conditions.
func (w *world) want(ctx context.Context, name, ready, stalled string) *Website {
	w.t.Helper()
	time.Sleep(time.Minute)
	var got Website
	if err := w.them.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &got); err != nil {
		w.t.Fatal(err)
	}
	list := got.Status.Conditions
	if !conditions.Is(list, "Ready", metav1.ConditionStatus(ready)) ||
		!conditions.Is(list, "Stalled", metav1.ConditionStatus(stalled)) {
		w.t.Errorf("%s: %+v", name, list)
	}
	return &got
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestWebsite(t *testing.T) {
	run(t, func(ctx context.Context, w *world) {
		w.must(w.them.Create(ctx, website("a", "example.com")))
		a := w.want(ctx, "a", "True", "False")
		if a.Status.URL != "http://example.com" || w.names.String() != "map[example.com:default/a]" {
			t.Errorf("status %+v, names %s", a.Status, w.names)
		}
		a.Spec.HTML = "changed"
		w.must(w.them.Update(ctx, a))
		time.Sleep(time.Minute)
		page := &corev1.ConfigMap{}
		w.must(w.them.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a-page"}, page))
		if page.Data["index.html"] != "changed" || metav1.GetControllerOf(page).Name != "a" {
			t.Errorf("page %+v", page)
		}
		w.api.Audit().Reset()
		time.Sleep(24 * time.Hour)
		if idle := w.api.Audit().Writes(); len(idle) != 0 {
			t.Errorf("an idle day: %v", idle)
		}
	})
}

// The second Website of a domain stalls and says why, and gets the domain when the first is gone.
func TestDomainIsTaken(t *testing.T) {
	run(t, func(ctx context.Context, w *world) {
		w.must(w.them.Create(ctx, website("a", "example.com")))
		time.Sleep(time.Minute)
		w.must(w.them.Create(ctx, website("b", "example.com")))
		b := w.want(ctx, "b", "False", "True")
		if c := conditions.Get(b.Status.Conditions, "Stalled"); c.Reason != "DomainTaken" ||
			c.Message != "example.com belongs to default/a" {
			t.Errorf("condition %+v", c)
		}
		var list corev1.EventList
		w.must(w.them.List(ctx, &list, client.InNamespace("default")))
		warnings := 0
		for _, e := range list.Items {
			if e.InvolvedObject.Name == "b" && e.Type == corev1.EventTypeWarning && e.Reason == "DomainTaken" {
				warnings++
			}
		}
		if warnings != 1 {
			t.Errorf("%d warnings about b in %d events", warnings, len(list.Items))
		}
		w.must(w.them.Delete(ctx, website("a", "")))
		w.want(ctx, "b", "True", "False")
		if got := w.names.String(); got != "map[example.com:default/b]" {
			t.Errorf("names %s", got)
		}
	})
}

// While the name server is away a Website is not ready, nor does it go; when it is back both happen.
func TestNameServerAway(t *testing.T) {
	run(t, func(ctx context.Context, w *world) {
		w.names.breaks(errors.New("no route"))
		w.must(w.them.Create(ctx, website("a", "example.com")))
		w.want(ctx, "a", "Unknown", "False")
		w.names.breaks(nil)
		time.Sleep(20 * time.Minute)
		w.want(ctx, "a", "True", "False")
		w.names.breaks(errors.New("no route"))
		w.must(w.them.Delete(ctx, website("a", "")))
		w.want(ctx, "a", "True", "False")
		w.names.breaks(nil)
		time.Sleep(20 * time.Minute)
		if err := w.them.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"},
			&Website{}); !apierrors.IsNotFound(err) || w.names.String() != "map[]" {
			t.Errorf("%v, names %s", err, w.names)
		}
	})
}
