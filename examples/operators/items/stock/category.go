package stock

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// InUse is the finalizer that keeps a category while items refer to it.
const InUse = "stock.flyball.dev/in-use"

// CategoryReconciler numbers the items of a category and sums them up. Only it writes the status of categories, with
// the resource version that it read. So if two of them ran for a moment, one would get a conflict, and no number would
// be given twice.
type CategoryReconciler struct {
	client.Client
	Events events.Recorder
}

// Reconcile implements ctrl.Reconciler.
func (r *CategoryReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var category api.Category
	if err := r.Get(ctx, request.NamespacedName, &category); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var items api.ItemList
	if err := r.List(ctx, &items, client.InNamespace(request.Namespace),
		client.MatchingFields{itemCategory: request.Name}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list items: %w", err)
	}
	if category.DeletionTimestamp == nil || len(items.Items) == 0 { // otherwise it stays until the last item's event
		going, err := controllerutil.Finalize(ctx, r, &category, InUse, func(context.Context) error { return nil })
		if going || err != nil {
			return ctrl.Result{}, err
		}
	}
	var rivals api.CategoryList
	if err := r.List(ctx, &rivals, client.InNamespace(request.Namespace),
		client.MatchingFields{categoryPrefix: category.Spec.Prefix}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list categories: %w", err)
	}
	return ctrl.Result{},
		r.update(ctx, &category, planCategory(&category, elderOf(&category, rivals.Items), items.Items))
}

// update writes the status if it has changed, and records events.
func (r *CategoryReconciler) update(ctx context.Context, category *api.Category, status api.CategoryStatus) error {
	if equality.Semantic.DeepEqual(category.Status, status) {
		return nil
	}
	before := category.Status.Conditions
	category.Status = status
	if err := r.Status().Update(ctx, category); err != nil {
		return fmt.Errorf("update status: %w", err)
	}
	for _, about := range []string{conditions.Stalled, api.OverLimit} {
		if became(before, status.Conditions, about) {
			c := conditions.Get(status.Conditions, about)
			r.Events.Eventf(category, corev1.EventTypeWarning, c.Reason, "%s", c.Message)
		}
	}
	return nil
}

// became reports whether a condition has become true.
func became(before, now []metav1.Condition, about string) bool {
	return conditions.Is(now, about, metav1.ConditionTrue) && !conditions.Is(before, about, metav1.ConditionTrue)
}
