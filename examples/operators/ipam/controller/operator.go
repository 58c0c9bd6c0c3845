package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

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
func New(ctx context.Context, config *rest.Config, base ctrl.Options, o Options) (ctrl.Manager, error) {
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

// Options decide which addresses count as unused. [Defaults] returns the usual ones.
type Options struct {
	// CleanupTerminating releases the addresses of Pods that are being deleted before they are gone.
	CleanupTerminating bool
	// CleanupDisrupted releases the addresses of Pods that the taint manager has decided to delete.
	CleanupDisrupted bool
	// VerifyNetworkStatus releases the addresses that a running Pod does not have according to its network status. Pods
	// without that status keep theirs. It applies to IPPools only.
	VerifyNetworkStatus bool

	// MismatchGrace is how long an address must be missing from the network status before it is released. Multus writes
	// the status after the address was allocated, and a Pod whose sandbox is recreated keeps the old status for a
	// while. Zero means 10 s, negative not at all.
	MismatchGrace time.Duration
	// ShowFor is how long conditions report what was done (OrphansCleaned, PoolCreated, PoolUpdated) before they report
	// Reconciled. Zero means 30 s, negative not at all.
	ShowFor time.Duration
	// MinInterval is the least time between two passes over one pool, so that a thousand Pods that appear at once cause
	// only a few passes. Zero means 200 ms, negative none.
	MinInterval time.Duration
	// Metrics count what was done. Nil counts nothing.
	Metrics *Metrics
}

// Defaults returns the default options of the operator.
func Defaults() Options { return Options{CleanupDisrupted: true, VerifyNetworkStatus: true} }

// withDefaults replaces zero durations by their defaults, and negative ones by zero.
func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{{&o.MismatchGrace, 10 * time.Second}, {&o.ShowFor, 30 * time.Second}, {&o.MinInterval, 200 * time.Millisecond}} {
		if *d.value == 0 {
			*d.value = d.usual
		}
		*d.value = max(*d.value, 0)
	}
	return o
}
