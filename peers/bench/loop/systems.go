package loop

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Client is what the reconcilers use of a system's client. Get reads from the cache.
type Client interface {
	Get(ctx context.Context, name types.NamespacedName, into *corev1.ConfigMap) error
	// Patch sends the difference between base and changed as a merge patch.
	Patch(ctx context.Context, changed, base *corev1.ConfigMap) error
}

// Reconciler is the work of a controller, the same for all systems.
type Reconciler func(ctx context.Context, c Client, name types.NamespacedName) error

// Setup is how a controller is set up.
type Setup struct {
	Workers int
	// Resync is how often all objects are reconciled anew; zero means the system's default.
	Resync    time.Duration
	Reconcile Reconciler
}

// System is a framework, or a mixture of two.
type System struct {
	// Run runs a controller of all ConfigMaps until ctx is done.
	Run func(ctx context.Context, config *rest.Config, s Setup) error
	// Feed runs a controller whose only source adds those keys once.
	Feed func(ctx context.Context, config *rest.Config, s Setup, keys []types.NamespacedName) error
}
