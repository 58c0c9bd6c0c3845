package providers

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
)

// definition returns the CustomResourceDefinition of a kind.
func definition(d Discovery, plural, scope string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + d.Kind.Group},
		"spec": map[string]any{
			"group": d.Kind.Group, "scope": scope,
			"names": map[string]any{"kind": d.Kind.Kind, "plural": plural, "singular": strings.ToLower(d.Kind.Kind)},
			"versions": []any{map[string]any{
				"name": d.Kind.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{
					"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				},
			}},
		},
	}}
}

// objectOf returns an object of the kind, with labels of the form "a=b".
func objectOf(d Discovery, name string, labels ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(d.Kind)
	u.SetName(name)
	all := map[string]string{}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		all[key] = value
	}
	u.SetLabels(all)
	return u
}

// ready sets the condition in the status; an empty status removes it.
func ready(u *unstructured.Unstructured, d Discovery, status string) *unstructured.Unstructured {
	var conditions []any
	if status != "" {
		conditions = append(conditions, map[string]any{"type": "Other", "status": "True"},
			map[string]any{"type": d.ReadyCondition, "status": status, "reason": "Because"})
	}
	u.Object["status"] = map[string]any{"conditions": conditions}
	return u
}

func ExampleNewProjects() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	them, err := client.New(server.RESTConfig(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	shop := objectOf(External(), "shop")
	if err := errors.Join(them.Create(ctx, definition(External(), "projects", "Cluster")),
		them.Create(ctx, shop)); err != nil {
		log.Fatal(err)
	}
	if err := them.Status().Update(ctx, ready(shop, External(), "True")); err != nil {
		log.Fatal(err)
	}
	local, err := manager.New(server.RESTConfig(), manager.Options{})
	if err != nil {
		log.Fatal(err)
	}
	provider, err := NewProjects(local, ProjectOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fleet := &recorder{OnSynced: cancel} // in place of a multicluster.Manager's fleet
	done := make(chan error)
	go func() { done <- local.Run(ctx) }()
	fmt.Println(provider.Run(ctx, fleet), <-done)
	cluster, err := fleet.Cluster("shop")
	fmt.Println(cluster.Config.Host, err)
	// Output:
	// <nil> <nil>
	// http://localapi/apis/resourcemanager.miloapis.com/v1alpha1/projects/shop/control-plane <nil>
}

// world is a server with projects and a running provider.
type world struct {
	t     *testing.T
	ctx   context.Context
	api   *localapi.Test
	them  client.Client
	fleet *recorder
	p     *Projects
	d     Discovery
	// restart ends the provider's run and begins another.
	restart func()
}

func inWorld(t *testing.T, o ProjectOptions, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, api: localapi.NewTest(t), fleet: &recorder{}, d: o.Discovery}
		if w.d == (Discovery{}) {
			w.d = External()
		}
		var err error
		w.them, err = client.New(w.api.RESTConfig(), client.Options{})
		w.must(err)
		w.must(w.them.Create(t.Context(), definition(External(), "projects", "Cluster")))
		w.must(w.them.Create(t.Context(), definition(Internal(), "projectcontrolplanes", "Namespaced")))
		local, err := manager.New(w.api.RESTConfig(), manager.Options{})
		w.must(err)
		w.p, err = NewProjects(local, o)
		w.must(err)
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		w.ctx = ctx
		managed := make(chan error)
		go func() { managed <- local.Run(ctx) }()
		run, stop, done := context.Context(nil), context.CancelFunc(nil), make(chan error)
		start := func() {
			run, stop = context.WithCancel(ctx)
			go func() { done <- w.p.Run(run, w.fleet) }()
		}
		w.restart = func() {
			stop()
			w.must(<-done)
			start()
		}
		start()
		w.wants("synced")
		test(w)
		stop()
		w.must(<-done)
		cancel()
		w.must(<-managed)
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(name string, labels ...string) *unstructured.Unstructured {
	w.t.Helper()
	u := objectOf(w.d, name, labels...)
	w.must(w.them.Create(w.ctx, u))
	return u
}

// update writes u and its status.
func (w *world) update(u *unstructured.Unstructured) {
	w.t.Helper()
	status := u.Object["status"]
	w.must(w.them.Update(w.ctx, u))
	u.Object["status"] = status
	w.must(w.them.Status().Update(w.ctx, u))
}

// wants compares the fleet's records since the last call with want.
func (w *world) wants(want string) {
	w.t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	if got := w.fleet.Log(); got != want {
		w.t.Errorf("the fleet heard %q, want %q", got, want)
	}
}

func (w *world) host(name string) string {
	w.t.Helper()
	a, err := w.fleet.Cluster(name)
	w.must(err)
	return a.Config.Host
}

func TestAProjectThatIsNotReadyIsNotUsed(t *testing.T) {
	inWorld(t, ProjectOptions{}, func(w *world) {
		shop := w.create("shop")
		w.wants("join shop (it has no condition Ready)")
		w.update(ready(shop, w.d, "Unknown"))
		w.wants("change shop: readiness (its condition Ready is Unknown: Because)")
		w.update(ready(shop, w.d, "True"))
		w.wants("change shop: readiness")
		if got := w.host(
			"shop",
		); got != "http://localapi/apis/resourcemanager.miloapis.com/v1alpha1/projects/shop/control-plane" {
			t.Errorf("the control plane is at %s", got)
		}
	})
}

func TestAProjectThatIsNotReadyAnyMoreIsDisengaged(t *testing.T) {
	inWorld(t, ProjectOptions{}, func(w *world) {
		shop := w.create("shop")
		w.update(ready(shop, w.d, "True"))
		w.wants("join shop (it has no condition Ready); change shop: readiness")
		w.update(ready(shop, w.d, "False"))
		w.wants("change shop: readiness (its condition Ready is False: Because)")
		w.update(ready(shop, w.d, "True"))
		w.wants("change shop: readiness")
		w.update(ready(shop, w.d, ""))
		w.wants("change shop: readiness (it has no condition Ready)")
	})
}

func TestAProjectThatIsBeingDeletedIsDisengaged(t *testing.T) {
	inWorld(t, ProjectOptions{}, func(w *world) {
		shop := w.create("shop")
		shop.SetFinalizers([]string{"example.com/wait"})
		w.update(ready(shop, w.d, "True"))
		w.wants("join shop (it has no condition Ready); change shop: readiness")
		w.must(w.them.Delete(w.ctx, shop))
		w.wants("change shop: readiness (it is being deleted)")
		w.must(w.them.Get(w.ctx, client.ObjectKeyFromObject(shop), shop))
		shop.SetFinalizers(nil)
		w.must(w.them.Update(w.ctx, shop))
		w.wants("leave shop")
	})
}

// A project that was deleted and created again between two checks is a new cluster.
func TestAProjectMadeAnewIsAnotherCluster(t *testing.T) {
	inWorld(t, ProjectOptions{}, func(w *world) {
		shop := w.create("shop")
		w.update(ready(shop, w.d, "True"))
		w.wants("join shop (it has no condition Ready); change shop: readiness")
		w.must(w.them.Delete(w.ctx, shop))
		anew := w.create("shop")
		w.update(ready(anew, w.d, "True"))
		w.wants("leave shop; join shop (it has no condition Ready); change shop: readiness")
		if a, err := w.fleet.Cluster("shop"); err != nil || a.Identity != string(anew.GetUID()) ||
			a.Identity == string(shop.GetUID()) {
			t.Errorf("the cluster is %+v, %v", a, err)
		}
	})
}

// The same, but the provider does not see the deletion: its watch has failed, and its next list shows only the new
// project.
func TestAProjectMadeAnewUnseenIsAnotherCluster(t *testing.T) {
	inWorld(t, ProjectOptions{}, func(w *world) {
		shop, gone := w.create("shop"), w.create("gone")
		w.update(ready(shop, w.d, "True"))
		w.update(ready(gone, w.d, "True"))
		w.wants(
			"join shop (it has no condition Ready); join gone (it has no condition Ready); change shop: readiness; " +
				"change gone: readiness",
		)
		heal := w.api.Intercept(
			localapi.Rule{Resource: "projects", Verb: "list", Err: apierrors.NewServiceUnavailable("away")},
		)
		w.restart() // The new informer sees nothing yet, and the known clusters are announced again.
		w.wants("")
		w.must(w.them.Delete(w.ctx, shop))
		w.must(w.them.Delete(w.ctx, gone))
		anew := w.create("shop")
		w.update(ready(anew, w.d, "True"))
		w.wants("")
		heal()
		time.Sleep(time.Minute)
		w.wants("change shop: identity; leave gone; synced")
	})
}

func TestAProjectThatMovedIsAnotherCluster(t *testing.T) {
	d := External()
	d.Endpoint = "https://{{.Name}}.{{.Object.spec.zone}}.example"
	config := &rest.Config{Host: "https://base.example/prefix", BearerToken: "t"}
	inWorld(t, ProjectOptions{Discovery: d, Config: config}, func(w *world) {
		shop := w.create("shop")
		w.wants("join shop (it has no condition Ready)")
		w.update(ready(shop, w.d, "True"))
		w.wants("") // It is ready, but has no endpoint: its cluster stays as it was.
		if err := w.p.Health(); err == nil || !strings.Contains(err.Error(), `shop: endpoint`) {
			t.Errorf("health is %v", err)
		}
		for _, zone := range []string{"eu", "us"} {
			shop.Object["spec"] = map[string]any{"zone": zone}
			w.update(shop)
			w.wants(map[string]string{"eu": "change shop: readiness", "us": "change shop: host"}[zone])
			if got, want := w.host("shop"), "https://shop."+zone+".example"; got != want {
				t.Errorf("the control plane is at %s, want %s", got, want)
			}
		}
		w.must(w.p.Health())
	})
}

func TestInternalDiscovery(t *testing.T) {
	d := Internal()
	inWorld(t, ProjectOptions{
		Discovery: d, Namespace: "default",
		Config: &rest.Config{Host: "https://base.example/some/path", APIPath: "/x"},
	}, func(w *world) {
		plane, elsewhere := objectOf(d, "shop"), objectOf(d, "other")
		plane.SetNamespace("default")
		elsewhere.SetNamespace("kube-system")
		w.must(w.them.Create(w.ctx, plane))
		w.must(w.them.Create(w.ctx, elsewhere))
		w.wants("join shop (it has no condition ControlPlaneReady)")
		w.update(ready(plane, d, "True"))
		w.wants("change shop: readiness")
		a, err := w.fleet.Cluster("shop")
		w.must(err)
		if a.Config.Host != "https://milo-apiserver.project-shop.svc.cluster.local:6443" || a.Config.APIPath != "" {
			t.Errorf("the control plane is at %s %s", a.Config.Host, a.Config.APIPath)
		}
	})
}

func TestLabelSelector(t *testing.T) {
	inWorld(t, ProjectOptions{LabelSelector: "env=prod"}, func(w *world) {
		shop := w.create("shop", "env=prod")
		other := w.create("other", "env=test")
		w.wants("join shop (it has no condition Ready)")
		shop.SetLabels(map[string]string{"env": "prod", "tier": "1"})
		w.must(w.them.Update(w.ctx, shop))
		w.wants("change shop: labels")
		shop.SetLabels(map[string]string{"env": "test"})
		w.must(w.them.Update(w.ctx, shop))
		w.wants("leave shop")
		other.SetLabels(map[string]string{"env": "prod"})
		w.must(w.them.Update(w.ctx, other))
		w.wants("join other (it has no condition Ready)")
	})
}

// A hundred projects that cannot be reached do not delay the others, because the provider connects to none.
func TestProviderConnectsToNoProject(t *testing.T) {
	inWorld(t, ProjectOptions{Config: &rest.Config{Host: "https://192.0.2.1"}}, func(w *world) {
		for i := range 20 {
			w.update(ready(w.create(fmt.Sprintf("p-%d", i)), w.d, "True"))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(strings.Fields(w.fleet.Names())); got != 20 {
			t.Errorf("%d clusters are announced, want 20", got)
		}
	})
}

// The kind is defined after the provider has started.
func TestTheKindIsNotServedYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := localapi.NewTest(t)
		local, err := manager.New(api.RESTConfig(), manager.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewProjects(local, ProjectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		done, fleet := make(chan error, 2), &recorder{}
		go func() { done <- local.Run(ctx) }()
		go func() { done <- p.Run(ctx, fleet) }()
		time.Sleep(time.Minute)
		if log := fleet.Log(); log != "" {
			t.Errorf("without the kind the fleet heard %q", log)
		}
		them, err := client.New(api.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := them.Create(ctx, definition(External(), "projects", "Cluster")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if log := fleet.Log(); log != "synced" {
			t.Errorf("with the kind the fleet heard %q", log)
		}
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestRunsDoNotLeak(t *testing.T) {
	inWorld(t, ProjectOptions{}, func(w *world) {
		w.create("shop")
		w.wants("join shop (it has no condition Ready)")
		before := runtime.NumGoroutine()
		for range 10 {
			w.restart()
			w.wants("synced")
		}
		if after := runtime.NumGoroutine(); after > before+5 { // goroutines of other tests may come and go
			t.Errorf("%d goroutines, %d before", after, before)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	config := &rest.Config{Host: "https://base.example"}
	with := func(endpoint string) ProjectOptions {
		d := External()
		d.Endpoint = endpoint
		return ProjectOptions{Config: config, Discovery: d}
	}
	for want, o := range map[string]ProjectOptions{
		"LabelSelector":                     {Config: config, LabelSelector: "!!"},
		"unclosed action":                   with("{{"),
		"can't evaluate field No":           with("https://{{.No}}"),
		`"shop" is not the URL of a server`: with("shop"),
		"no Kind":                           {Config: config, Discovery: Discovery{Endpoint: "https://shop.example"}},
	} {
		if _, err := NewProjects(nil, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
