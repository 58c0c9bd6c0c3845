package stock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// Labelled is the finalizer that keeps an item until its label is gone.
const Labelled = "stock.flyball.dev/labelled"

// ItemLabel marks the labels (ConfigMaps) of items. The caches hold no other ConfigMaps.
const ItemLabel = "stock.flyball.dev/item"

// Printer prints the label of an item. Printing twice must be harmless: a process that dies before it has recorded the
// print prints again. An error is retried.
type Printer func(ctx context.Context, sku, text string) error

// ItemReconciler takes items into the stock: see the package comment.
type ItemReconciler struct {
	client.Client
	Events events.Recorder
	Print  Printer // nil: labels are recorded, but not printed
}

// +kubebuilder:rbac:groups=stock.flyball.dev,resources=items;categories,verbs=list;watch;patch
// +kubebuilder:rbac:groups=stock.flyball.dev,resources=items/status;categories/status,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconcile implements ctrl.Reconciler.
func (r *ItemReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var item api.Item
	if err := r.Get(ctx, request.NamespacedName, &item); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	going, err := controllerutil.Finalize(ctx, r, &item, Labelled,
		func(ctx context.Context) error { return r.removeLabel(ctx, &item) })
	if going || err != nil {
		return ctrl.Result{}, err
	}
	state := itemState{now: time.Now()}
	var category api.Category
	switch err := r.Get(ctx, client.ObjectKey{Namespace: item.Namespace, Name: item.Spec.Category}, &category); {
	case err == nil:
		state.category = &category
	case !apierrors.IsNotFound(err):
		return ctrl.Result{}, fmt.Errorf("get category: %w", err)
	}
	if status, _ := planItem(&item, state); status.SKU != "" && status.SKU == item.Status.SKU &&
		status.Shelf == item.Status.Shelf {
		if err := r.ensureLabel(ctx, &item); err != nil {
			return ctrl.Result{}, fmt.Errorf("label: %w", err)
		}
		state.labelled = true
	}
	status, again := planItem(&item, state)
	return ctrl.Result{RequeueAfter: again}, r.update(ctx, &item, status)
}

// update writes the status if it has changed, and records events.
func (r *ItemReconciler) update(ctx context.Context, item *api.Item, status api.ItemStatus) error {
	if equality.Semantic.DeepEqual(item.Status, status) {
		return nil
	}
	before := item.Status.Conditions
	item.Status = status
	if err := r.Status().Update(ctx, item); err != nil {
		return fmt.Errorf("update status: %w", err)
	}
	for about, kind := range map[string]string{
		conditions.Ready: corev1.EventTypeNormal, conditions.Stalled: corev1.EventTypeWarning,
		api.RecountDue: corev1.EventTypeWarning,
	} {
		if became(before, status.Conditions, about) {
			c := conditions.Get(status.Conditions, about)
			r.Events.Eventf(item, kind, c.Reason, "%s", c.Message)
		}
	}
	return nil
}

// errTaken means that another owner's ConfigMap has the name of a label. It is retried, because that ConfigMap may go.
var errTaken = errors.New("a ConfigMap that is not the item's has the name")

// ensureLabel brings the label up to date, and prints it if its text has changed.
func (r *ItemReconciler) ensureLabel(ctx context.Context, item *api.Item) error {
	label := r.labelOf(item)
	if err := ctrl.SetControllerReference(item, label, r.Scheme()); err != nil {
		return err
	}
	var found corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKeyFromObject(label), &found)
	if apierrors.IsNotFound(err) { // it is missing, or the cache does not hold it because its mark is gone
		err = r.Get(ctx, client.ObjectKeyFromObject(label), &found, client.Live)
	}
	switch {
	case apierrors.IsNotFound(err):
		if err := r.print(ctx, label); err != nil {
			return err
		}
		return r.Create(ctx, label)
	case err != nil:
		return err
	case !metav1.IsControlledBy(&found, item):
		return fmt.Errorf("%s: %w", found.Name, errTaken)
	case maps.Equal(found.Data, label.Data) && found.Labels[ItemLabel] == item.Name:
		return nil
	}
	if !maps.Equal(found.Data, label.Data) {
		if err := r.print(ctx, label); err != nil {
			return err
		}
	}
	found.Data = label.Data
	metav1.SetMetaDataLabel(&found.ObjectMeta, ItemLabel, item.Name)
	return r.Update(ctx, &found)
}

func (r *ItemReconciler) labelOf(item *api.Item) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: item.Namespace, Name: LabelName(item.Name),
			Labels: map[string]string{ItemLabel: item.Name},
		},
		Data: map[string]string{"sku": item.Status.SKU, "text": item.Name + " / shelf " + item.Status.Shelf},
	}
}

// LabelName returns the name of an item's label.
func LabelName(item string) string { return item + "-label" }

func (r *ItemReconciler) print(ctx context.Context, label *corev1.ConfigMap) error {
	if r.Print == nil {
		return nil
	}
	return r.Print(ctx, label.Data["sku"], label.Data["text"])
}

// removeLabel deletes the item's label, but not another owner's.
func (r *ItemReconciler) removeLabel(ctx context.Context, item *api.Item) error {
	var found corev1.ConfigMap
	err := r.Get(ctx, client.ObjectKey{Namespace: item.Namespace, Name: LabelName(item.Name)}, &found, client.Live)
	if err != nil || !metav1.IsControlledBy(&found, item) {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(r.Delete(ctx, &found, client.OnlyThis(&found)))
}

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
