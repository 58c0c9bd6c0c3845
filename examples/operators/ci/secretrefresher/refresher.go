package secretrefresher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// The names of the controllers, in the manager of each cluster.
const (
	Name       = "service-account-secret-refresher"
	MinterName = "service-account-secret-minter"
)

// Options configure both controllers.
type Options struct {
	// Namespaces are those whose service accounts are refreshed.
	Namespaces []string
	// IgnoreAccounts are service accounts ("namespace/name") to ignore.
	IgnoreAccounts []string
	// RemoveOld deletes secrets that are old enough.
	RemoveOld bool
	// Workers is how many service accounts are worked on at once. Zero means 20.
	Workers int
}

// Caches keeps the contents of secrets out of the caches. Their age does not depend on them.
func Caches() []client.CacheOf {
	return []client.CacheOf{
		{
			Object:   &corev1.Secret{},
			Informer: informer.InformerOptions{TransformName: "without contents", Transform: withoutContents},
		},
	}
}

// withoutContents is a cache transform, so no other code sees the object before it.
func withoutContents(obj informer.Object) (informer.Object, error) {
	if secret, ok := obj.(*corev1.Secret); ok {
		secret.Data, secret.StringData = nil, nil
	}
	return obj, nil
}

func (o *Options) wants(namespace, name string) bool {
	return slices.Contains(o.Namespaces, namespace) && !slices.Contains(o.IgnoreAccounts, namespace+"/"+name)
}

// accountOf returns a request for the service account that a secret belongs to.
func accountOf(_ context.Context, secret informer.Object) []ctrl.Request {
	name := secret.GetAnnotations()[corev1.ServiceAccountNameKey]
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: secret.GetNamespace(), Name: name}}}
}

// watch returns a builder of a controller of the service accounts that o selects.
func watch(c *fleet.Cluster, name string, o Options) *ctrl.Builder {
	o.Workers = cmp.Or(o.Workers, 20)
	wanted := predicate.Matching(func(obj informer.Object) bool {
		if secret, ok := obj.(*corev1.Secret); ok {
			return o.wants(obj.GetNamespace(), secret.Annotations[corev1.ServiceAccountNameKey])
		}
		return o.wants(obj.GetNamespace(), obj.GetName())
	})
	return ctrl.NewControllerManagedBy(c.Manager).Named(name).
		For(&corev1.ServiceAccount{}, builder.WithPredicates(wanted)).
		Watches(&corev1.Secret{}, handler.EnqueueMapped(accountOf), builder.WithPredicates(wanted)).
		WithOptions(ctrl.ControllerOptions{Workers: o.Workers})
}

type refresher struct {
	client.Client
	o Options
}

// Add adds the refresher to a cluster's manager, together with the controllers that replace the Pods of owners that ask
// for it.
func Add(c *fleet.Cluster, o Options) error {
	return errors.Join(watch(c, Name, o).Complete(&refresher{c.Client, o}), addRollers(c, o))
}

// Reconcile first drops references to old secrets, and then deletes old secrets.
func (r *refresher) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	sa := &corev1.ServiceAccount{}
	if err := r.Get(ctx, q.NamespacedName, sa); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	all, err := secretsIn(ctx, r, q.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := time.Now()
	p := planFor(sa, all, r.o.RemoveOld, now)
	if p.changed {
		ctrl.LoggerFrom(ctx).Info("Dropping references to old secrets",
			"pullSecrets", len(sa.ImagePullSecrets)-len(p.pull), "secrets", len(sa.Secrets)-len(p.secrets))
		sa.ImagePullSecrets, sa.Secrets = p.pull, p.secrets
		if err := r.Update(ctx, sa); err != nil {
			return ctrl.Result{}, fmt.Errorf("update service account: %w", err)
		}
	}
	for _, old := range p.remove {
		ctrl.LoggerFrom(ctx).Info("Deleting old secret", "secret", old.Name, "created", old.CreationTimestamp.Time)
		if err := r.Delete(ctx, old, client.OnlyThis(old)); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("delete old secret: %w", err)
		}
	}
	if p.waits() {
		ctrl.LoggerFrom(ctx).V(2).Info("Service account waits for secrets, whose coming is an event")
	}
	if p.next.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: p.next.Sub(now)}, nil
}

// secretsIn returns the secrets of a namespace by name. They must not be changed.
func secretsIn(ctx context.Context, c client.Reader, namespace string) (map[string]*corev1.Secret, error) {
	var list corev1.SecretList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.ReadOnly); err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	all := make(map[string]*corev1.Secret, len(list.Items))
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all, nil
}
