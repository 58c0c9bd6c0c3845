package namespaces

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/groupclient"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// Name is the name of the controller. Its loops have the names of kube-controller-manager's.
const (
	Name         = "namespaces"
	deletionName = "namespace-controller"
	accountName  = "serviceaccount-controller"
)

// Config holds the clients and informers that the controller uses. Client and Namespaces are required. Server and Pods
// are required unless KeepContent is set, ServiceAccounts unless NoServiceAccounts is.
type Config struct {
	// Client reads namespaces and pods from the server, not from a cache, and writes.
	Client client.Client
	// Server is the configuration of the clients that discover the server's resources, and list and delete the content,
	// of whatever type.
	Server          *rest.Config
	Namespaces      informer.Informer[*corev1.Namespace]
	ServiceAccounts informer.Informer[*corev1.ServiceAccount]
	// Pods queue a deleted namespace again when its last pod is gone.
	Pods informer.Informer[*corev1.Pod]
}

// Options configures the controller. The zero value runs both loops without delay.
type Options struct {
	// Workers is how many namespaces each loop works on at once. Zero means 10.
	Workers int
	// KeepContent switches the deletion loop off: the content of a deleted namespace stays.
	KeepContent bool
	// DeletionDelay is how long the controller waits after a namespace's deletion before it deletes content. Zero means
	// no time. Where several API servers share a store, one of them may accept new content for a moment after another
	// has accepted the deletion; kube-controller-manager waits 5 s.
	DeletionDelay time.Duration
	// NoServiceAccounts switches the account loop off.
	NoServiceAccounts bool
	// ServiceAccounts are the names of the accounts that each namespace gets. Nil means "default".
	ServiceAccounts []string
	// Metrics receives the queues' metrics. Nil means none.
	Metrics workqueue.MetricsProvider
}

// Controller runs both loops.
//
// Concurrency: all methods may be called from any goroutine; Run only once.
type Controller struct {
	config  Config
	options Options
	// server and content are nil if the deletion loop is switched off.
	server  discovery.DiscoveryInterface
	content metadata.Interface

	// deletions and accounts are nil if switched off.
	deletions *reconcile.Controller[reconcile.Request]
	accounts  *reconcile.Controller[reconcile.Request]
}

// New makes the controller. Nothing runs before [Controller.Run]. The caller runs the informers.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/namespace/namespace_controller.go, NewNamespaceController,
// pkg/controller/serviceaccount/serviceaccounts_controller.go, NewServiceAccountsController.
func New(config Config, o Options) (*Controller, error) {
	switch {
	case config.Client == nil || config.Namespaces == nil:
		return nil, fmt.Errorf("%s: the config lacks the client or the informer of namespaces", Name)
	case !o.KeepContent && (config.Server == nil || config.Pods == nil):
		return nil, fmt.Errorf(
			"%s: the config lacks the server or the informer of pods, and content is to be deleted", Name,
		)
	case !o.NoServiceAccounts && config.ServiceAccounts == nil:
		return nil, fmt.Errorf("%s: the config lacks the informer of service accounts, and there are some to create",
			Name)
	}
	if o.Workers <= 0 {
		o.Workers = 10
	}
	if o.ServiceAccounts == nil {
		o.ServiceAccounts = []string{"default"}
	}
	c := &Controller{config: config, options: o}
	return c, errors.Join(c.buildDeletions(), c.buildAccounts())
}

// longestRetry bounds the backoff of a deletion that fails: it is retried at least every minute.
const longestRetry = time.Minute

func (c *Controller) buildDeletions() error {
	if c.options.KeepContent {
		return nil
	}
	var err1, err2 error
	c.server, err1 = groupclient.Discovery(c.config.Server)
	c.content, err2 = metadata.NewForConfig(c.config.Server)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("%s: new client: %w", Name, err)
	}
	c.deletions = reconcile.New(deletionName, reconcile.Func[reconcile.Request](c.reconcileDeletion),
		reconcile.Options[reconcile.Request]{
			Workers: c.options.Workers, Metrics: c.options.Metrics,
			RateLimiter: workqueue.NewMaxWaitRateLimiter(workqueue.DefaultControllerRateLimiter[reconcile.Request](),
				longestRetry),
		})
	return errors.Join(
		c.deletions.Watch(source.Kind(c.config.Namespaces, deletedNamespaces())),
		c.deletions.Watch(source.Kind(c.config.Pods, c.lastPods())),
	)
}

func (c *Controller) buildAccounts() error {
	if c.options.NoServiceAccounts {
		return nil
	}
	c.accounts = reconcile.New(accountName, reconcile.Func[reconcile.Request](c.reconcileAccounts),
		reconcile.Options[reconcile.Request]{Workers: c.options.Workers, Metrics: c.options.Metrics})
	return errors.Join(
		c.accounts.Watch(source.Kind(c.config.Namespaces, handler.EnqueueObject[*corev1.Namespace]())),
		c.accounts.Watch(source.Kind(c.config.ServiceAccounts, deletedAccounts())),
	)
}

// Name returns [Name].
func (c *Controller) Name() string { return Name }

// loops returns the controllers that are switched on.
func (c *Controller) loops() []*reconcile.Controller[reconcile.Request] {
	var loops []*reconcile.Controller[reconcile.Request]
	for _, l := range []*reconcile.Controller[reconcile.Request]{c.deletions, c.accounts} {
		if l != nil {
			loops = append(loops, l)
		}
	}
	return loops
}

// Loops returns the controllers that are switched on.
func (c *Controller) Loops() []reconcile.Loop {
	var loops []reconcile.Loop
	for _, l := range c.loops() {
		loops = append(loops, l)
	}
	return loops
}

// Run works on namespaces until ctx is done. It may be called once.
func (c *Controller) Run(ctx context.Context) error {
	loops := c.loops()
	errs := make([]error, len(loops))
	var wg sync.WaitGroup
	for i, loop := range loops {
		wg.Go(func() { errs[i] = loop.Run(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Health returns nil if the loops work.
func (c *Controller) Health() error {
	var errs []error
	for _, loop := range c.loops() {
		errs = append(errs, loop.Health())
	}
	return errors.Join(errs...)
}
