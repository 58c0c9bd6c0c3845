package endpointslice

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/controllers/internal/serving"
	"github.com/flyball-dev/flyball/reconcile"
)

// staleRetry is how long a sync waits for the cache when no event of it comes.
const staleRetry = sliceDelay

// Reconcile implements [reconcile.Reconciler]: observe, plan, apply.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/endpointslice/endpointslice_controller.go, syncService
func (c *controller) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	svc, found := c.services.Get(key.Namespace, key.Name)
	if !found {
		c.triggers.Forget(key.NamespacedName)
		c.ledger.forget(key.NamespacedName)
		c.hinted.set(key.NamespacedName, false)
		return reconcile.Result{}, nil
	}
	if !serving.HasSelector(svc) {
		return reconcile.Result{}, nil
	}
	o, err := c.observe(key.NamespacedName, svc)
	if errors.Is(err, errBehind) {
		klog.FromContext(ctx).V(4).Info("The cache lacks the last writes, waiting for them")
		return reconcile.Result{RequeueAfter: staleRetry}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted := plan(o)
	logSkipped(ctx, wanted.skipped)
	c.hinted.set(key.NamespacedName, wanted.hinted)
	err = c.apply(ctx, key.NamespacedName, wanted)
	for _, n := range wanted.notices {
		c.recorder.Eventf(svc, n.kind, n.reason, "%s", n.message)
	}
	if err != nil && ctx.Err() == nil { // a stop is no failure
		c.recorder.Eventf(svc, corev1.EventTypeWarning, "FailedToUpdateEndpointSlices",
			"Error updating Endpoint Slices for Service %s/%s: %v", svc.Namespace, svc.Name, err)
	}
	return reconcile.Result{}, err
}

// errBehind says that the cache does not hold our last writes.
var errBehind = errors.New("the cache lacks the last writes")

// observe reads what the plan is made from. The trigger time moves on even if nothing comes of it.
//
// Errors: errBehind.
func (c *controller) observe(key types.NamespacedName, svc *corev1.Service) (observed, error) {
	c.ledger.await(key)
	// The watermark is read first: the slices are then at least as new.
	watermark := c.slices.ResourceVersion()
	kept, err := c.slices.ByIndex(serviceIndex, key.String())
	if err != nil {
		return observed{}, fmt.Errorf("find endpoint slices: %w", err)
	}
	if c.ledger.lacks(key, watermark, kept) {
		return observed{}, errBehind
	}
	selected, err := pods.Selected(c.pods, key.Namespace, labels.Set(svc.Spec.Selector).AsSelectorPreValidated())
	if err != nil {
		return observed{}, err
	}
	o := observed{
		service:      svc,
		pods:         selected,
		nodes:        make(map[string]*corev1.Node),
		hinted:       c.hinted.has(key),
		maxEndpoints: c.maxEndpoints,
	}
	for _, slice := range kept {
		if slice.DeletionTimestamp == nil {
			o.slices = append(o.slices, slice)
		}
	}
	for _, pod := range o.pods {
		if node, found := c.nodes.Get("", pod.Spec.NodeName); found {
			o.nodes[node.Name] = node
		}
	}
	if wantsTopology(svc) {
		o.shares = zoneShares(c.nodes.All())
	}
	o.trigger = c.triggers.Advance(svc, o.pods)
	return o, nil
}

func logSkipped(ctx context.Context, skipped []skippedPod) {
	logger := klog.FromContext(ctx).V(4)
	if !logger.Enabled() {
		return
	}
	for _, s := range skipped {
		logger.Info("Pod does not have the port", "pod", klog.KObj(s.pod), "port", s.port)
	}
}

// apply does what the plan wants, and returns all that went wrong, pods without a node included.
func (c *controller) apply(ctx context.Context, key types.NamespacedName, wanted changes) error {
	var errs []error
	for _, pod := range wanted.missingNodes {
		errs = append(errs, fmt.Errorf("skipping Pod %s for Service %s: Node %s Not Found", pod.Name, key, pod.Spec.NodeName))
	}
	for i := range wanted.batches {
		if err := c.write(ctx, key, &wanted.batches[i]); err != nil {
			errs = append(errs, err)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// write carries out one batch, up to the first failure.
func (c *controller) write(ctx context.Context, key types.NamespacedName, b *batch) error {
	for _, slice := range b.create {
		if stop, err := c.create(ctx, key, slice); stop || err != nil {
			return err
		}
	}
	for _, slice := range b.update {
		if err := c.update(ctx, key, slice); err != nil {
			return err
		}
	}
	for _, slice := range b.remove {
		if err := c.remove(ctx, key, slice); err != nil {
			return err
		}
	}
	return nil
}

// create writes a new slice. In a namespace that is being deleted that cannot succeed, and need not: stop is then true.
func (c *controller) create(ctx context.Context, key types.NamespacedName, slice *discoveryv1.EndpointSlice) (stop bool, err error) {
	floor := c.slices.ResourceVersion()
	created, err := c.client.DiscoveryV1().EndpointSlices(key.Namespace).Create(ctx, slice, metav1.CreateOptions{})
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		klog.FromContext(ctx).V(4).Info("Endpoint slice not created, the namespace is being deleted")
		return true, nil
	}
	if err != nil {
		return true, fmt.Errorf("failed to create EndpointSlice for Service %s: %w", key, err)
	}
	c.wrote(ctx, key, created, floor)
	return false, nil
}

func (c *controller) update(ctx context.Context, key types.NamespacedName, slice *discoveryv1.EndpointSlice) error {
	floor := c.slices.ResourceVersion()
	updated, err := c.client.DiscoveryV1().EndpointSlices(key.Namespace).Update(ctx, slice, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("failed to update %s EndpointSlice for Service %s: %w", slice.Name, key, err)
	}
	c.wrote(ctx, key, updated, floor)
	return nil
}

// wrote notes the answer to a write. The Service is synced again should others undo it before the cache shows it.
func (c *controller) wrote(ctx context.Context, key types.NamespacedName, slice *discoveryv1.EndpointSlice, floor string) {
	c.ledger.wrote(key, slice, floor)
	client.Expect(ctx, c.slices, discoveryv1.Resource("endpointslices"), slice)
}

// remove deletes a slice, but not another that has taken its name.
func (c *controller) remove(ctx context.Context, key types.NamespacedName, slice *discoveryv1.EndpointSlice) error {
	floor := c.slices.ResourceVersion()
	o := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &slice.UID}}
	err := c.client.DiscoveryV1().EndpointSlices(key.Namespace).Delete(ctx, slice.Name, o)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("failed to delete %s EndpointSlice for Service %s: %w", slice.Name, key, err)
	}
	c.ledger.deleted(key, slice.UID, floor)
	if held, found := c.slices.Get(slice.Namespace, slice.Name); !found || held.UID != slice.UID {
		c.ledger.gone(key, slice.UID) // the event that would do it may have come before the note
	}
	return nil
}
