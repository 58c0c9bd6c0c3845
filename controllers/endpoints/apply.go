package endpoints

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/controllers/internal/serving"
	"github.com/flyball-dev/flyball/reconcile"
)

// staleRetry is how long a sync waits for the cache when no event of it comes.
const staleRetry = time.Second

// Reconcile implements [reconcile.Reconciler]: observe, plan, apply.
func (c *controller) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	o, current, err := c.observe(key.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !current {
		klog.FromContext(ctx).V(4).Info("The cache lacks the last write, waiting for it")
		return reconcile.Result{RequeueAfter: staleRetry}, nil
	}
	wanted := plan(o)
	logSkipped(ctx, wanted.skipped)
	return reconcile.Result{}, c.apply(ctx, key.NamespacedName, o, wanted)
}

// observe reads what the plan is made from. It returns false when the cache does not hold the last write to these
// Endpoints. The trigger time moves on even if nothing comes of it.
func (c *controller) observe(key types.NamespacedName) (_ observed, current bool, _ error) {
	svc, found := c.services.Get(key.Namespace, key.Name)
	if !found {
		return observed{}, true, nil
	}
	if !serving.HasSelector(svc) {
		return observed{service: svc}, true, nil
	}
	selected, err := pods.Selected(c.pods, key.Namespace, labels.Set(svc.Spec.Selector).AsSelectorPreValidated())
	if err != nil {
		return observed{}, false, err
	}
	o := observed{service: svc, pods: selected}
	write, pending := c.writes.await(key)
	// The watermark is read first: the object is then at least as new.
	watermark := c.endpoints.ResourceVersion()
	if ep, found := c.endpoints.Get(key.Namespace, key.Name); found {
		o.current = ep
	}
	if pending {
		if write.missingFrom(o.current, watermark) {
			return observed{}, false, nil
		}
		c.writes.settle(key)
	}
	o.trigger = c.triggers.Advance(svc, o.pods)
	return o, true, nil
}

func logSkipped(ctx context.Context, skipped []skippedPod) {
	logger := klog.FromContext(ctx).V(4)
	if !logger.Enabled() {
		return
	}
	for _, s := range skipped {
		logger.Info("Pod left out", "pod", klog.KObj(s.pod), "port", s.port, "reason", s.reason)
	}
}

// apply does what the plan wants.
func (c *controller) apply(ctx context.Context, key types.NamespacedName, o observed, wanted change) error {
	switch wanted.verb {
	case create:
		return c.create(ctx, o.service, wanted.endpoints)
	case update:
		return c.update(ctx, o.current, wanted.endpoints)
	case remove:
		return c.remove(ctx, key)
	default:
		return nil
	}
}

// create writes new Endpoints. In a namespace that is being deleted that cannot succeed, and need not.
func (c *controller) create(ctx context.Context, svc *corev1.Service, ep *corev1.Endpoints) error {
	created, err := c.client.CoreV1().Endpoints(ep.Namespace).Create(ctx, ep, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		klog.FromContext(ctx).V(4).Info("Endpoints not created, the namespace is being deleted")
		return nil
	}
	if err != nil {
		c.recorder.Eventf(ep, corev1.EventTypeWarning, "FailedToCreateEndpoint",
			"Failed to create endpoint for service %v/%v: %v", svc.Namespace, svc.Name, err)
		return fmt.Errorf("create endpoints: %w", err)
	}
	c.wrote(ctx, "", created)
	return nil
}

func (c *controller) update(ctx context.Context, current, ep *corev1.Endpoints) error {
	updated, err := c.client.CoreV1().Endpoints(ep.Namespace).Update(ctx, ep, metav1.UpdateOptions{})
	if err != nil {
		c.recorder.Eventf(ep, corev1.EventTypeWarning, "FailedToUpdateEndpoint",
			"Failed to update endpoint %v/%v: %v", ep.Namespace, ep.Name, err)
		return fmt.Errorf("update endpoints: %w", err)
	}
	c.wrote(ctx, current.ResourceVersion, updated)
	return nil
}

// wrote notes the answer to a write. The Service is synced again should others undo it before the cache shows it.
func (c *controller) wrote(ctx context.Context, before string, ep *corev1.Endpoints) {
	c.writes.wrote(nameOf(ep), before, ep.ResourceVersion)
	client.Expect(ctx, c.endpoints, corev1.Resource("endpoints"), ep)
}

// remove deletes the Endpoints of a Service that is gone, if there are any, whoever wrote them.
func (c *controller) remove(ctx context.Context, key types.NamespacedName) error {
	err := c.client.CoreV1().Endpoints(key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete endpoints: %w", err)
	}
	c.triggers.Forget(key)
	held, found := c.endpoints.Get(key.Namespace, key.Name)
	if !found {
		held = nil
	}
	c.writes.removed(key, held)
	if _, found := c.endpoints.Get(key.Namespace, key.Name); !found {
		c.writes.settle(key) // the event that would do it may have come before the note
	}
	return nil
}

func nameOf(ep *corev1.Endpoints) types.NamespacedName {
	return types.NamespacedName{Namespace: ep.Namespace, Name: ep.Name}
}
