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
	rootsName    = "root-ca-certificate-publisher-controller"
)

// workers is how many namespaces each loop works on at once.
const workers = 10

// Controller runs the loops.
//
// Concurrency: all methods may be called from any goroutine; Run only once.
type Controller struct {
	client     client.Client // reads namespaces and pods from the server, not from a cache, and writes
	namespaces informer.Informer[*corev1.Namespace]
	accounts   informer.Informer[*corev1.ServiceAccount]
	pods       informer.Informer[*corev1.Pod]
	roots      informer.Informer[*corev1.ConfigMap]
	rootCA     []byte

	// server discovers the resources, and content lists and deletes objects of whatever type.
	server  discovery.DiscoveryInterface
	content metadata.Interface

	deletions *reconcile.Controller[reconcile.Request]
	loops     []*reconcile.Controller[reconcile.Request] // all of them
}

// longestRetry bounds the backoff of a deletion that fails: it is retried at least every minute.
const longestRetry = time.Minute

// New makes the controller, with further clients made of config. Nothing runs before [Controller.Run]. The caller runs
// the informers. rootCA are the certificates to publish in every namespace, in PEM; nil means that there are none.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/namespace/namespace_controller.go, NewNamespaceController,
// pkg/controller/serviceaccount/serviceaccounts_controller.go, NewServiceAccountsController.
func New(writer client.Client, config *rest.Config, informers *informer.Factory, rootCA []byte) (*Controller, error) {
	c := &Controller{client: writer, rootCA: rootCA}
	var errs [5]error
	c.namespaces, errs[0] = informer.For[*corev1.Namespace](informers)
	c.accounts, errs[1] = informer.For[*corev1.ServiceAccount](informers)
	c.pods, errs[2] = informer.For[*corev1.Pod](informers)
	c.server, errs[3] = groupclient.Discovery(config)
	c.content, errs[4] = metadata.NewForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	c.deletions = reconcile.New(deletionName, reconcile.Func[reconcile.Request](c.reconcileDeletion),
		reconcile.Options[reconcile.Request]{
			Workers: workers,
			RateLimiter: workqueue.NewMaxWaitRateLimiter(workqueue.DefaultControllerRateLimiter[reconcile.Request](),
				longestRetry),
		})
	creations := reconcile.New(accountName, reconcile.Func[reconcile.Request](c.reconcileAccounts),
		reconcile.Options[reconcile.Request]{Workers: workers})
	c.loops = []*reconcile.Controller[reconcile.Request]{c.deletions, creations}
	err := errors.Join(
		c.deletions.Watch(source.Kind(c.namespaces, deletedNamespaces())),
		c.deletions.Watch(source.Kind(c.pods, c.lastPods())),
		creations.Watch(source.Kind(c.namespaces, handler.EnqueueObject[*corev1.Namespace]())),
		creations.Watch(source.Kind(c.accounts, deletedAccounts())),
	)
	if err != nil || rootCA == nil {
		return c, err
	}
	return c, c.publish(informers)
}

// publish adds the loop that publishes the root certificates.
func (c *Controller) publish(informers *informer.Factory) (err error) {
	c.roots, err = informer.ForOptions[*corev1.ConfigMap](informers,
		informer.InformerOptions{FieldSelector: "metadata.name=" + rootName})
	if err != nil {
		return fmt.Errorf("%s: %w", Name, err)
	}
	publications := reconcile.New(rootsName, reconcile.Func[reconcile.Request](c.reconcileRoot),
		reconcile.Options[reconcile.Request]{Workers: workers})
	c.loops = append(c.loops, publications)
	return errors.Join(
		publications.Watch(source.Kind(c.namespaces, handler.EnqueueObject[*corev1.Namespace]())),
		publications.Watch(source.Kind(c.roots, handler.EnqueueMapped(
			func(_ context.Context, config *corev1.ConfigMap) []reconcile.Request {
				return []reconcile.Request{requestFor(config.Namespace)}
			}))),
	)
}

// Name returns [Name].
func (c *Controller) Name() string { return Name }

// Loops returns the loops.
func (c *Controller) Loops() (loops []reconcile.Loop) {
	for _, l := range c.loops {
		loops = append(loops, l)
	}
	return loops
}

// Run works on namespaces until ctx is done. It may be called once.
func (c *Controller) Run(ctx context.Context) error {
	errs := make([]error, len(c.loops))
	var wg sync.WaitGroup
	for i, l := range c.loops {
		wg.Go(func() { errs[i] = l.Run(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Health returns nil if the loops work.
func (c *Controller) Health() error {
	var errs []error
	for _, l := range c.loops {
		errs = append(errs, l.Health())
	}
	return errors.Join(errs...)
}
