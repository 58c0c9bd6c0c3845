package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// Labels of the originals and of the copies.
const (
	originalLabel = "fleet.example.com/sync"
	copyLabel     = "fleet.example.com/copy"
)

// patience bounds the time for one copy. Without it, a cluster that does not answer would block a request for ever.
const patience = 15 * time.Second

// Syncer makes the copies.
type Syncer struct {
	// Originals reads the local cluster.
	Originals client.Client
	Fleet     *multicluster.Manager
}

// SetupWithFleet builds the controller.
func (s *Syncer) SetupWithFleet() error {
	labelled := func(label string) builder.WatchOptions {
		return builder.WithPredicates(
			predicate.Matching(func(obj informer.Object) bool { return obj.GetLabels()[label] != "" }),
		)
	}
	return multicluster.ControllerManagedBy(s.Fleet).
		Named("sync").
		For(&corev1.ConfigMap{}, labelled(copyLabel)).
		Watches(&corev1.Namespace{}, handler.EnqueueMapped(s.originalsOf)).
		WatchesLocal(&corev1.ConfigMap{}, handler.EnqueueMapped(s.copiesOf), labelled(originalLabel)).
		WithOptions(reconcile.Options[multicluster.Request]{Timeout: patience}).
		Complete(s)
}

// copiesOf returns requests for the copies of an original, one in every cluster that is in the fleet or is joining it.
func (s *Syncer) copiesOf(_ context.Context, original informer.Object) (requests []multicluster.Request) {
	for _, c := range s.Fleet.Clusters() {
		requests = append(requests, multicluster.RequestFor(c.Name, original.GetNamespace(), original.GetName()))
	}
	return requests
}

// originalsOf returns requests for the originals to copy into a namespace of a cluster.
func (s *Syncer) originalsOf(ctx context.Context, namespace informer.Object) (requests []ctrl.Request) {
	var originals corev1.ConfigMapList
	if err := s.Originals.List(ctx, &originals, client.InNamespace(namespace.GetName()),
		client.HasLabels{originalLabel}); err != nil {
		// The list reads the cache, so it fails only if the kind is missing.
		klog.FromContext(ctx).Error(err, "Originals cannot be listed")
	}
	for _, o := range originals.Items {
		requests = append(requests, reconcile.RequestFor(&o))
	}
	return requests
}

// Reconcile brings the copy of one original in one cluster up to date.
func (s *Syncer) Reconcile(ctx context.Context, r multicluster.Request) (ctrl.Result, error) {
	cluster, err := s.Fleet.GetCluster(ctx, r.Cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	original := &corev1.ConfigMap{}
	err = s.Originals.Get(ctx, r.NamespacedName, original)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	twin := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
	if err != nil || original.Labels[originalLabel] == "" {
		return ctrl.Result{}, s.remove(ctx, cluster, twin)
	}
	if err := cluster.Get(ctx, client.ObjectKey{Name: r.Namespace}, &corev1.Namespace{}); err != nil {
		// This controller does not create namespaces; a new one triggers another reconcile.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	did, err := controllerutil.CreateOrUpdate(ctx, cluster, twin, func() error {
		if twin.UID != "" && twin.Labels[copyLabel] == "" {
			return reconcile.Terminal(
				fmt.Errorf("there is a config map %s in %s that is no copy", klog.KObj(twin), r.Cluster),
			)
		}
		metav1.SetMetaDataLabel(&twin.ObjectMeta, copyLabel, "true")
		if !maps.Equal(twin.Data, original.Data) {
			twin.Data = maps.Clone(original.Data)
		}
		return nil
	})
	if err == nil && did != controllerutil.OperationResultNone {
		ctrl.LoggerFrom(ctx).V(2).Info("Copied", "result", did)
	}
	return ctrl.Result{}, err
}

// remove deletes a copy, but not another object of the same name. It asks the server about the original first: the
// cache of a process that has just started may be old, and the original may have come again since.
func (s *Syncer) remove(ctx context.Context, c client.Client, twin *corev1.ConfigMap) error {
	key := client.ObjectKeyFromObject(twin)
	if err := c.Get(ctx, key, twin); err != nil || twin.Labels[copyLabel] == "" {
		return client.IgnoreNotFound(err)
	}
	var original corev1.ConfigMap
	err := s.Originals.Get(ctx, key, &original, client.Live)
	if client.IgnoreNotFound(err) != nil || err == nil && original.Labels[originalLabel] != "" {
		return client.IgnoreNotFound(err) // if it is there, its event triggers another reconcile
	}
	return client.IgnoreNotFound(c.Delete(ctx, twin, client.OnlyThis(twin)))
}
