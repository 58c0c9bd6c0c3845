package loop

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Client is what the reconcilers use of a system's client. Get reads from the cache.
type Client interface {
	Get(ctx context.Context, name types.NamespacedName, into APIObject) error
	// Patch sends the difference between base and changed as a merge patch.
	Patch(ctx context.Context, changed, base APIObject) error
	Create(ctx context.Context, obj APIObject) error
	Update(ctx context.Context, obj APIObject) error
	UpdateStatus(ctx context.Context, obj APIObject) error
	Delete(ctx context.Context, obj APIObject) error
}

// APIObject is a Kubernetes object.
type APIObject interface {
	metav1.Object
	runtime.Object
}

// Reconciler is the work of a controller, the same for all systems.
type Reconciler func(ctx context.Context, c Client, name types.NamespacedName) error

// Setup is how a controller is set up.
type Setup struct {
	Workers int
	// Resync is how often all objects are reconciled anew; zero means the system's default.
	Resync    time.Duration
	Reconcile Reconciler
	// For is an object of the kind that is reconciled, Owns one of its children's kind. Nil: it has no children.
	For, Owns APIObject
	// Scheme has the kinds. Nil: they are built in.
	Scheme *runtime.Scheme
}

// System is a framework, or a mixture of two.
type System struct {
	// Run runs a controller of all objects until ctx is done.
	Run func(ctx context.Context, config *rest.Config, s Setup) error
	// Feed runs a controller whose only source adds those keys once.
	Feed func(ctx context.Context, config *rest.Config, s Setup, keys []types.NamespacedName) error
}
