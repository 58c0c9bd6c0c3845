package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
)

// secretAnnotation of a Deployment names the Secret that its card shows a checksum of.
const secretAnnotation = "cards.example.com/secret"

// secretField is the index of Deployments by that annotation.
const secretField = "metadata.annotations.secret"

// Cards maintains a ConfigMap, a card, for every Deployment: what it runs, the checksum of its Secret, the team of its
// namespace, and the address of the Service of the same name.
type Cards struct{ client.Client }

// Options select the manager's parts.
type Options struct {
	// Flyball selects Flyball's cache, client and queue; Lean selects the cache that takes less memory.
	Flyball, Lean bool
}

// Apply sets the parts of a manager.
func (o Options) Apply(m *ctrl.Options) {
	if o.Flyball {
		m.NewCache = controllerruntime.NewCache
		if o.Lean {
			m.NewCache = controllerruntime.NewLeanCache
		}
		m.NewClient = controllerruntime.NewClient
	}
}

// queue sets the queue of a controller.
func (o Options) queue(c *controller.Options) {
	if o.Flyball {
		c.NewQueue = controllerruntime.NewQueue[reconcile.Request]
	}
}

// SetupWithManager makes the controller. It watches Deployments, the cards that they own, Secrets, namespaces as
// metadata only, and Services as unstructured objects.
func (c *Cards) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &appsv1.Deployment{}, secretField, func(obj client.Object) []string {
		if name := obj.GetAnnotations()[secretAnnotation]; name != "" {
			return []string{name}
		}
		return nil
	})
	if err != nil {
		return err
	}
	options := controller.Options{SkipNameValidation: new(true), MaxConcurrentReconciles: 4}
	o.queue(&options)
	return ctrl.NewControllerManagedBy(mgr).Named("cards").
		For(&appsv1.Deployment{},
			builder.WithPredicates(
				predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}),
			)).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.usersOfSecret)).
		WatchesMetadata(namespaceMetadata(""), handler.EnqueueRequestsFromMapFunc(c.inNamespace)).
		Watches(service(types.NamespacedName{}), &handler.EnqueueRequestForObject{}).
		WithOptions(options).
		Complete(c)
}

func namespaceMetadata(name string) *metav1.PartialObjectMetadata {
	ns := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return ns
}

func service(key types.NamespacedName) *unstructured.Unstructured {
	s := &unstructured.Unstructured{}
	s.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	s.SetNamespace(key.Namespace)
	s.SetName(key.Name)
	return s
}

func (c *Cards) usersOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	return c.requests(ctx, client.InNamespace(secret.GetNamespace()),
		client.MatchingFields{secretField: secret.GetName()})
}

func (c *Cards) inNamespace(ctx context.Context, ns client.Object) []reconcile.Request {
	return c.requests(ctx, client.InNamespace(ns.GetName()))
}

func (c *Cards) requests(ctx context.Context, opts ...client.ListOption) (all []reconcile.Request) {
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, opts...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list Deployments")
	}
	for i := range list.Items {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return all
}

// Reconcile updates the card of one Deployment.
func (c *Cards) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var d appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &d); err != nil || !d.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	content, err := c.content(ctx, &d)
	if err != nil {
		return reconcile.Result{}, err
	}
	card := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name + "-card"}}
	_, err = controllerutil.CreateOrUpdate(ctx, c.Client, card, func() error {
		card.Data = content
		return controllerutil.SetControllerReference(&d, card, c.Scheme())
	})
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: 1}, nil // Another replica was faster, or the cache is behind.
	}
	return reconcile.Result{}, err
}

func (c *Cards) content(ctx context.Context, d *appsv1.Deployment) (map[string]string, error) {
	content := map[string]string{"image": d.Spec.Template.Spec.Containers[0].Image}
	if name := d.Annotations[secretAnnotation]; name != "" {
		var secret corev1.Secret
		err := c.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, &secret)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		sum := sha256.New()
		for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
			sum.Write([]byte(key))
			sum.Write(secret.Data[key])
		}
		content["secret"] = hex.EncodeToString(sum.Sum(nil))
	}
	ns := namespaceMetadata(d.Namespace)
	if err := c.Get(ctx, client.ObjectKeyFromObject(ns), ns); err != nil {
		return nil, err
	}
	if team := ns.Labels["team"]; team != "" {
		content["team"] = team
	}
	svc := service(client.ObjectKeyFromObject(d))
	if err := c.Get(ctx, client.ObjectKeyFromObject(d), svc); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if address, found, _ := unstructured.NestedString(svc.Object, "spec", "clusterIP"); found {
		content["address"] = address
	}
	return content, nil
}
