package manager_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

const cleanUp = "example.com/clean-up"

// tenants is a controller like a real one: it creates a Secret for each ConfigMap "tenant-…". Before a ConfigMap is
// deleted, it cleans up what the tenant has elsewhere.
type tenants struct {
	t      *testing.T
	world  *world
	admin  kubernetes.Interface
	life   *life
	client *client.Cluster

	mu       sync.Mutex
	cleaned  map[string]int   // by name: how often it cleaned up
	failures map[string]error // by name: the error of the first clean-up
}

func startTenants(t *testing.T, w *world) *tenants {
	t.Helper()
	m := w.manager(t, manager.Options{})
	c := &tenants{
		t: t, world: w, client: m.GetClient(), admin: kubernetes.NewForConfigOrDie(w.server.RESTConfig()),
		cleaned: map[string]int{}, failures: map[string]error{},
	}
	if err := builder.ControllerManagedBy(m).Named("tenants").For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(
		c,
	); err != nil {
		t.Fatal(err)
	}
	c.life = live(t, m)
	return c
}

// Reconcile implements reconcile.Reconciler.
func (c *tenants) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var tenant corev1.ConfigMap
	if err := c.client.Get(ctx, r.NamespacedName, &tenant); err != nil || !strings.HasPrefix(r.Name, "tenant-") {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deleting, err := controllerutil.Finalize(ctx, c.client, &tenant, cleanUp,
		func(context.Context) error { return c.takeBack(tenant.Name) })
	if deleting || err != nil {
		return reconcile.Result{}, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
	_, err = controllerutil.CreateOrUpdate(ctx, c.client, secret, func() error {
		return controllerutil.SetControllerReference(&tenant, secret, c.client.Scheme())
	})
	return reconcile.Result{}, err
}

func (c *tenants) takeBack(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cleaned[name]++
	err := c.failures[name]
	delete(c.failures, name)
	return err
}

func (c *tenants) create(namespace, name string, finalizers ...string) {
	c.t.Helper()
	tenant := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}
	if _, err := c.admin.CoreV1().ConfigMaps(namespace).Create(c.t.Context(), tenant,
		metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *tenants) delete(namespace, name string) {
	c.t.Helper()
	if err := c.admin.CoreV1().ConfigMaps(namespace).Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// count returns the number of requests about the object for which is returns true.
func (c *tenants) count(name string, is func(audit.Entry) bool) int {
	return len(c.world.audit.Entries(func(e audit.Entry) bool { return e.Name == name && is(e) }))
}

// mustBeQuiet checks that nothing more happens.
func (c *tenants) mustBeQuiet() {
	c.t.Helper()
	before := c.world.audit.Entries(nil)
	time.Sleep(9 * time.Minute) // shorter than the life of a watch
	for _, e := range c.world.audit.Entries(nil)[len(before):] {
		if e.Verb != "watch" {
			c.t.Errorf("when all is over: %s", e)
		}
	}
	if err := c.life.Ready(); err != nil {
		c.t.Error(err)
	}
}

// TestTerminatingNamespace (case 50): a namespace is being deleted, and its Secrets are deleted first. The controller
// tries to create them again, at growing intervals, and the server rejects that. As soon as the ConfigMaps are being
// deleted, too, the controller stops trying, and lets them go.
func TestTerminatingNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startTenants(t, newWorld(t))
		ctx, core := t.Context(), c.admin.CoreV1()
		if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		names := []string{"tenant-a", "tenant-b", "tenant-c"}
		for _, name := range names {
			c.create("team", name, "example.com/held") // so that it stays for a while
		}
		time.Sleep(time.Second)
		made := func(e audit.Entry) bool { return e.Resource == "secrets" && e.Verb == "create" && e.Mutates() }
		refused := func(e audit.Entry) bool { return e.Resource == "secrets" && e.Verb == "create" && e.Code == 403 }

		if err := core.Namespaces().Delete(ctx, "team", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := core.Secrets("team").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		total := len(c.world.audit.Entries(refused))
		// 5 ms, 10 ms … up to 164 s: sixteen tries.
		if total == 0 || total > 18*len(names) {
			t.Errorf("the server refused %d Secrets in five minutes", total)
		}
		for _, name := range names {
			c.delete("team", name)
		}
		time.Sleep(5 * time.Minute)
		if now := len(c.world.audit.Entries(refused)); now != total {
			t.Errorf("%d more Secrets for what is being deleted", now-total)
		}
		for _, name := range names {
			if c.cleaned[name] != 1 || c.count(name, made) != 1 {
				t.Errorf("%s was taken back %d times; its Secret was made %d times", name, c.cleaned[name],
					c.count(name, made))
			}
			tenant, err := core.ConfigMaps("team").Get(ctx, name, metav1.GetOptions{})
			if err != nil || len(tenant.Finalizers) != 1 {
				t.Fatalf("%v, %v: want the other finalizer alone", tenant.Finalizers, err)
			}
			tenant.Finalizers = nil
			if _, err := core.ConfigMaps("team").Update(ctx, tenant, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		c.mustBeQuiet()
		c.life.mustEnd()
	})
}

// TestFinalizerIsRemovedOnce removes a finalizer under four difficulties: the object is changed at the same moment; the
// answer to the write is lost; the cache receives it late, after other changes; and the cleanup fails at first. The
// finalizer must be removed by one write, another finalizer must stay, and nothing may be created for an object that is
// being deleted.
func TestFinalizerIsRemovedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var c *tenants
		var mu sync.Mutex
		meddled, lost := false, false
		once := func(done *bool) bool {
			mu.Lock()
			defer mu.Unlock()
			first := !*done
			*done = true
			return first
		}
		w.answers = func(r *gate.Request, a gate.Answer) gate.Verdict {
			if r.Name == "tenant-lost" && r.Verb == "patch" && a.Code == 200 && w.deleting(t, r.Name) && once(&lost) {
				return gate.Verdict{Action: gate.Drop}
			}
			return gate.Verdict{}
		}
		w.frames = func(ctx context.Context, f gate.Frame) {
			if f.Name == "tenant-late" { // It was changed some seconds ago.
				select {
				case <-time.After(3 * time.Second):
				case <-ctx.Done():
				}
			}
		}
		c = startTenants(t, w)
		c.failures["tenant-fails"] = errors.New("the billing service is away")
		names := []string{"tenant-conflict", "tenant-lost", "tenant-late", "tenant-fails", "tenant-shared"}
		for _, name := range names {
			c.create("default", name)
		}
		time.Sleep(time.Minute)
		w.refuse(func(r *gate.Request) gate.Verdict {
			if r.Name == "tenant-conflict" && r.Verb == "patch" && r.UserAgent != "meddler" && once(&meddled) {
				c.label(r.Name, "meddler")
			}
			return gate.Verdict{}
		})
		c.finalizer("tenant-shared", "example.com/other")
		begin := len(w.audit.Entries(nil))
		for _, name := range names {
			c.delete("default", name)
		}
		for i := range 5 { // more changes while the cache is behind
			c.label("tenant-shared", fmt.Sprint("owner-", i))
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Minute)
		for _, name := range names {
			var accepted, conflicts, created int
			for _, e := range w.audit.Entries(nil)[begin:] {
				switch {
				case e.Name != name || e.UserAgent == "meddler":
				case e.Resource == "configmaps" && e.Verb == "patch" && e.Mutates():
					accepted++
				case e.Resource == "configmaps" && e.Verb == "patch" && e.Code == 409:
					conflicts++
				case e.Resource == "secrets" && e.Verb == "create":
					created++
				}
			}
			wantCleaned, mostConflicts := 1+conflicts, 0
			switch name {
			case "tenant-conflict", "tenant-shared":
				mostConflicts = 16 // with growing intervals, until the cache has what the other one wrote
			case "tenant-fails":
				wantCleaned = 2
			}
			if accepted != 1 || conflicts > mostConflicts || created != 0 || c.cleaned[name] != wantCleaned {
				t.Errorf("%s: the finalizer was removed %d times, %d conflicts, taken back %d times, %d Secrets made",
					name, accepted, conflicts, c.cleaned[name], created)
			}
			left, err := c.admin.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
			if name == "tenant-shared" {
				if err != nil || len(left.Finalizers) != 1 || left.Finalizers[0] != "example.com/other" {
					t.Errorf("%s: %v, %v", name, left.Finalizers, err)
				}
			} else if !apierrors.IsNotFound(err) {
				t.Errorf("%s is still there: %v, %v", name, left.Finalizers, err)
			}
		}
		if !meddled || !lost {
			t.Errorf("there was no conflict (%v) or no lost answer (%v)", meddled, lost)
		}
		c.mustBeQuiet()
		c.life.mustEnd()
	})
}

// deleting reports whether there was a request to delete the ConfigMap.
func (w *world) deleting(t *testing.T, name string) bool {
	t.Helper()
	return len(w.audit.Entries(func(e audit.Entry) bool { return e.Name == name && e.Verb == "delete" })) > 0
}

// label changes the object as another writer.
func (c *tenants) label(name, value string) {
	c.t.Helper()
	c.meddle(name, fmt.Sprintf(`{"metadata":{"labels":{"owner":%q}}}`, value))
}

// finalizer adds a finalizer as another writer.
func (c *tenants) finalizer(name, finalizer string) {
	c.t.Helper()
	c.meddle(name, fmt.Sprintf(`{"metadata":{"finalizers":[%q,%q]}}`, cleanUp, finalizer))
}

func (c *tenants) meddle(name, patch string) {
	c.t.Helper()
	config := c.world.server.RESTConfig()
	config.UserAgent = "meddler"
	other := kubernetes.NewForConfigOrDie(config)
	if _, err := other.CoreV1().ConfigMaps("default").Patch(c.t.Context(), name, "application/merge-patch+json",
		[]byte(patch), metav1.PatchOptions{}); err != nil {
		c.t.Error(err)
	}
}
