package stock

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
)

// followCategories asks for the items that an event of a category concerns: for all of its items when all have to know, and for one
// when one has got its number. (A category of a thousand items changes a thousand times while they come: asking for all each time
// would be a million reconciles.)
func (r *ItemReconciler) followCategories() builder.Handler {
	all := reconcile.EnqueueMapped(r.ofCategory)
	return builder.Handler{
		OnAdd: all.OnAdd, OnDelete: all.OnDelete,
		OnUpdate: func(ctx context.Context, old, obj ctrl.Object, q reconcile.Enqueuer[ctrl.Request]) {
			before, now := old.(*api.Category), obj.(*api.Category)
			if concernsAll(before, now) {
				all.OnUpdate(ctx, old, obj, q)
				return
			}
			for name, number := range now.Status.Numbers {
				if before.Status.Numbers[name] != number {
					q.Add(request(now.Namespace, name))
				}
			}
			for name := range before.Status.Numbers {
				if _, has := now.Status.Numbers[name]; !has {
					q.Add(request(now.Namespace, name))
				}
			}
		},
	}
}

// concernsAll says whether a category has changed in what all of its items depend on.
func concernsAll(before, now *api.Category) bool {
	return before.UID != now.UID || before.Spec != now.Spec ||
		(before.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
		stallOf(before) != stallOf(now)
}

func stallOf(c *api.Category) (message string) {
	if s := conditions.Get(c.Status.Conditions, conditions.Stalled); s != nil {
		return string(s.Status) + s.Message
	}
	return ""
}

// ofCategory are the items of a category.
func (r *ItemReconciler) ofCategory(ctx context.Context, category ctrl.Object) (requests []ctrl.Request) {
	var items api.ItemList
	err := r.List(ctx, &items, client.InNamespace(category.GetNamespace()), client.MatchingFields{itemCategory: category.GetName()}, client.Lagging)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Items of a category are not known") // the index is there from the start
	}
	for _, item := range items.Items {
		requests = append(requests, request(item.Namespace, item.Name))
	}
	return requests
}

// categoryOf is the category of an item.
func categoryOf(_ context.Context, item ctrl.Object) []ctrl.Request {
	return []ctrl.Request{request(item.GetNamespace(), item.(*api.Item).Spec.Category)}
}

// rivals are the categories with the prefix of another: when that goes, or takes another prefix, it is free.
func (r *CategoryReconciler) rivals(ctx context.Context, category ctrl.Object) (requests []ctrl.Request) {
	prefix := category.(*api.Category).Spec.Prefix
	var all api.CategoryList
	if err := r.List(ctx, &all, client.InNamespace(category.GetNamespace()), client.MatchingFields{categoryPrefix: prefix}, client.Lagging); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Categories with a prefix are not known")
	}
	for _, other := range all.Items {
		if other.Name != category.GetName() {
			requests = append(requests, request(other.Namespace, other.Name))
		}
	}
	return requests
}

func request(namespace, name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}
