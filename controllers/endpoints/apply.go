package endpoints

import (
	"context"
	"fmt"

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

// Reconcile implements [reconcile.Reconciler]: observe, plan, apply.
func (c *controller) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	o, err := c.observe(key.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted := plan(o)
	logSkipped(ctx, wanted.skipped)
	return c.apply(ctx, key.NamespacedName, o, wanted)
}

// observe reads what plan needs. It advances the trigger time even if nothing is written afterwards.
func (c *controller) observe(key types.NamespacedName) (observed, error) {
	current, _ := c.endpoints.Get(key.Namespace, key.Name)
	svc, found := c.services.Get(key.Namespace, key.Name)
	if !found {
		return observed{current: current}, nil
	}
	if !serving.HasSelector(svc) {
		return observed{service: svc}, nil
	}
	selected, err := pods.Selected(c.pods, key.Namespace, labels.Set(svc.Spec.Selector).AsSelectorPreValidated())
	if err != nil {
		return observed{}, err
	}
	o := observed{service: svc, pods: selected, current: current}
	o.trigger = c.triggers.Advance(svc, o.pods)
	return o, nil
}

func logSkipped(ctx context.Context, skipped []skippedPod) {
	logger := klog.FromContext(ctx).V(4)
	if !logger.Enabled() {
		return
	}
	for _, s := range skipped {
		logger.Info("Skipping pod", "pod", klog.KObj(s.pod), "port", s.port, "reason", s.reason)
	}
}

// apply carries out the write that the plan wants.
func (c *controller) apply(ctx context.Context, key types.NamespacedName, o observed, wanted change,
) (reconcile.Result, error) {
	switch wanted.verb {
	case create:
		return reconcile.Result{}, c.create(ctx, o.service, wanted.endpoints)
	case update:
		return reconcile.Result{}, c.update(ctx, wanted.endpoints)
	case remove:
		return c.remove(ctx, key, o.current)
	default:
		return reconcile.Result{}, nil
	}
}

// create writes new Endpoints. It is no error if the namespace is being deleted: no retry would succeed.
func (c *controller) create(ctx context.Context, svc *corev1.Service, ep *corev1.Endpoints) error {
	err := c.client.Create(ctx, ep)
	if apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		klog.FromContext(ctx).V(4).Info("Endpoints not created, the namespace is being deleted")
		return nil
	}
	if err != nil {
		c.recorder.Eventf(ep, corev1.EventTypeWarning, "FailedToCreateEndpoint",
			"Failed to create endpoint for service %v/%v: %v", svc.Namespace, svc.Name, err)
		return fmt.Errorf("create endpoints: %w", err)
	}
	return nil
}

func (c *controller) update(ctx context.Context, ep *corev1.Endpoints) error {
	if err := c.client.Update(ctx, ep); err != nil {
		c.recorder.Eventf(ep, corev1.EventTypeWarning, "FailedToUpdateEndpoint",
			"Failed to update endpoint %v/%v: %v", ep.Namespace, ep.Name, err)
		return fmt.Errorf("update endpoints: %w", err)
	}
	return nil
}

// remove deletes the Endpoints of a Service that is gone, whoever wrote them, if there are any. It asks the server
// first: the cache may lack the Service because a replica of the API lags. If the cache has the Endpoints, remove
// deletes no others: those would be of a Service of the same name that was created in the meantime. Their deletion
// fails with a conflict, and the retry finds that Service.
//
// Differs: kube-controller-manager asks nothing, and deletes them by name alone.
func (c *controller) remove(ctx context.Context, key types.NamespacedName, current *corev1.Endpoints,
) (reconcile.Result, error) {
	err := c.client.Get(ctx, key, &corev1.Service{}, client.Live)
	if err == nil {
		return reconcile.Result{RequeueAfter: serving.AskAgain}, nil
	}
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("confirm that endpoints are to be deleted: %w", err)
	}
	ep := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	var opts []client.DeleteOption
	if current != nil {
		opts = append(opts, client.Preconditions{UID: &current.UID})
	}
	if err := client.IgnoreNotFound(c.client.Delete(ctx, ep, opts...)); err != nil {
		return reconcile.Result{}, fmt.Errorf("delete endpoints: %w", err)
	}
	c.triggers.Forget(key)
	return reconcile.Result{}, nil
}
