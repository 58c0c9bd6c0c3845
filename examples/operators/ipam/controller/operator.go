package controller

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// Name is the name of the operator in its events, its lease and its manifests.
const Name = "ipam-operator"

// NewScheme returns a scheme of the types that the operator reads and writes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), multus.AddToScheme(scheme))
}

// New makes a manager with the operator's controllers. It sets the scheme and the caches of base.
func New(ctx context.Context, config *rest.Config, base ctrl.Options, o Options) (*ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	base.Informers.Scheme = scheme
	base.Caches = append(base.Caches, client.CacheOf{
		Object: &corev1.Pod{}, Informer: informer.InformerOptions{Transform: slim, TransformName: Name},
	})
	mgr, err := ctrl.NewManager(config, base)
	if err != nil {
		return nil, err
	}
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, fmt.Errorf("add indexes: %w", err)
	}
	o = o.withDefaults()
	c, recorder := mgr.GetClient(), mgr.GetEventRecorderFor(Name)
	return mgr, errors.Join(
		(&poolReconciler{Client: c, options: o, recorder: recorder}).setup(mgr),
		(&sliceReconciler{Client: c, options: o, recorder: recorder}).setup(mgr),
		(&reservationReconciler{Client: c, options: o, recorder: recorder}).setup(mgr),
		(&networkReconciler{Client: c, recorder: recorder}).setup(mgr),
	)
}
