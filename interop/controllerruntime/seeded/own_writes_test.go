package seeded

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/seeded"
)

// The controllers of this file rely on controller-runtime's option to read one's own writes, as of v0.25.2, where it
// does not hold what they expect of it.

// owner is what they have in common: a client with that option, and a reader without a cache.
type owner struct {
	client.Client
	api    client.Reader
	mended bool
}

// direct are the options that turn the option off for one call.
const direct = client.DisableReadYourWritesConsistency

// ownWrites returns the scenario of a controller for Deployments.
func ownWrites(
	mended bool, script func(u *simtest.User),
	reconcile func(c *owner, ctx context.Context, app *appsv1.Deployment) error,
) simtest.Scenario {
	build := func(e *simtest.Env) (simtest.Program, error) {
		mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{
			Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: new(true)},
			Client: client.Options{Cache: &client.CacheOptions{
				Unstructured: true, EnableReadYourWritesConsistency: new(true),
			}},
		})
		if err != nil {
			return nil, err
		}
		c := &owner{mgr.GetClient(), mgr.GetAPIReader(), mended}
		return simtest.ProgramFunc(mgr.Start), ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).
			Watches(&corev1.ConfigMap{}, &handler.EnqueueRequestForObject{}). // of the Deployment of the same name
			Complete(reconcileFunc(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
				var app appsv1.Deployment
				if err := c.Get(ctx, r.NamespacedName, &app); err != nil {
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
				return ctrl.Result{}, reconcile(c, ctx, &app)
			}))
	}
	return simtest.Scenario{Build: build, Script: script}
}

// reconcileFunc is a function that is a reconciler.
type reconcileFunc func(ctx context.Context, r ctrl.Request) (ctrl.Result, error)

// Reconcile implements reconcile.Reconciler.
func (f reconcileFunc) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	return f(ctx, r)
}

// TestOwnWriteUnstructured: names are collected in one ConfigMap. The bug: the ConfigMap is read and written as
// unstructured. The client then does not wait for its own writes, and a name is lost. The mended one uses the Go type.
func TestOwnWriteUnstructured(t *testing.T) {
	create := func(u *simtest.User) {
		u.Create(configMap("names"))
		u.Settle()
		u.Create(deployment("a"))
		u.Create(deployment("b"))
		u.Settle()
	}
	collect := func(c *owner, ctx context.Context, app *appsv1.Deployment) error {
		var names client.Object = &unstructured.Unstructured{}
		if c.mended {
			names = &corev1.ConfigMap{}
		}
		names.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		if err := c.Get(ctx, client.ObjectKey{Namespace: app.Namespace, Name: "names"}, names); err != nil {
			return err
		}
		known := strings.Fields(names.GetAnnotations()["names"])
		if slices.Contains(known, app.Name) {
			return nil
		}
		known = slices.Sorted(slices.Values(append(known, app.Name)))
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"names":%q}}}`, strings.Join(known, " "))
		return c.Patch(ctx, names, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	seeded.Check(t, func(mended bool) simtest.Scenario {
		s := ownWrites(mended, create, collect)
		s.Matches = func(s *simtest.State) error {
			names, ok := simtest.Get[*corev1.ConfigMap](s, "default", "names")
			if ok && names.Annotations["names"] != "a b" {
				return fmt.Errorf("the names are %q", names.Annotations["names"])
			}
			return nil
		}
		return s
	})
}

// lock creates the ConfigMap "lock", or gets the one that is there from before a crash.
func (c *owner) lock(ctx context.Context) (*corev1.ConfigMap, error) {
	lock := configMap("lock")
	err := c.Create(ctx, lock)
	if apierrors.IsAlreadyExists(err) {
		err = c.api.Get(ctx, client.ObjectKeyFromObject(lock), lock)
	}
	return lock, err
}

// done notes in the Deployment that its work is done.
func (c *owner) done(ctx context.Context, app *appsv1.Deployment) error {
	app.Annotations = map[string]string{"done": "yes"}
	return c.Update(ctx, app)
}

func createWeb(u *simtest.User) {
	u.Create(deployment("web"))
	u.Settle()
}

// TestOwnWriteDeletedByName: a ConfigMap serves as a lock while some work is done. The bug: it is deleted by its name.
// The client looks up the UID in the cache, which has not seen the ConfigMap yet, and says that there is none. The
// mended one sends the request.
func TestOwnWriteDeletedByName(t *testing.T) {
	work := func(c *owner, ctx context.Context, app *appsv1.Deployment) error {
		if app.Annotations["done"] != "" {
			return nil
		}
		if _, err := c.lock(ctx); err != nil {
			return err
		}
		var o []client.DeleteOption
		if c.mended {
			o = append(o, direct)
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, configMap("lock"), o...)); err != nil {
			return err
		}
		return c.done(ctx, app)
	}
	seeded.Check(t, func(mended bool) simtest.Scenario {
		s := ownWrites(mended, createWeb, work)
		s.Matches = func(s *simtest.State) error {
			if _, ok := simtest.Get[*corev1.ConfigMap](s, "default", "lock"); ok {
				return fmt.Errorf("the lock is still there")
			}
			return nil
		}
		return s
	})
}

// TestOwnWriteGoneBetweenLists: as before, and then ConfigMaps are counted. The bug: if the lock has come and gone
// while the cache did not see it, the list waits for an event that never comes. The mended one does not wait.
func TestOwnWriteGoneBetweenLists(t *testing.T) {
	work := func(c *owner, ctx context.Context, app *appsv1.Deployment) error {
		if app.Annotations["done"] != "" {
			return nil
		}
		lock, err := c.lock(ctx)
		if err != nil {
			return err
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, lock)); err != nil {
			return err
		}
		o := []client.ListOption{client.InNamespace(app.Namespace)}
		if c.mended {
			o = append(o, direct)
		}
		if err := c.List(ctx, &corev1.ConfigMapList{}, o...); err != nil {
			return err
		}
		return c.done(ctx, app)
	}
	seeded.Check(t, func(mended bool) simtest.Scenario { return ownWrites(mended, createWeb, work) })
}

// TestOwnWriteDeletedByAnother: each Deployment has a ConfigMap. The bug: if somebody else deletes it before the cache
// has seen it, the next read waits for ever: a list does not tell the client how new the cache is. The mended one does
// not wait.
func TestOwnWriteDeletedByAnother(t *testing.T) {
	keep := func(c *owner, ctx context.Context, app *appsv1.Deployment) error {
		m := configMap(app.Name)
		var o []client.GetOption
		if c.mended {
			o = append(o, direct)
		}
		err := c.Get(ctx, client.ObjectKeyFromObject(m), m.DeepCopy(), o...)
		if !apierrors.IsNotFound(err) {
			return err
		}
		return client.IgnoreAlreadyExists(c.Create(ctx, m))
	}
	script := func(u *simtest.User) {
		createWeb(u)
		u.Delete(configMap("web"))
		simtest.Update(u, deployment("web"), func(d *appsv1.Deployment) {
			d.Labels = map[string]string{"again": "yes"}
		})
		u.Settle()
	}
	seeded.Check(t, func(mended bool) simtest.Scenario { return ownWrites(mended, script, keep) })
}
