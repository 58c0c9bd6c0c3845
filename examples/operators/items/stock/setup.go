package stock

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// The indexes of the caches.
const (
	itemCategory   = ".spec.category"
	categoryPrefix = ".spec.prefix"
)

// Options configure [NewManager]. The zero value works.
type Options struct {
	// Manager are the options of the manager. The scheme and the caches are set here.
	Manager ctrl.Options
	// Workers is how many items, and how many categories, are reconciled at once. 0 is 4.
	Workers int
	// Print prints labels. Nil means that they are recorded, but not printed.
	Print Printer
}

// NewManager makes a manager with the two controllers. It starts nothing.
func NewManager(ctx context.Context, config *rest.Config, o Options) (ctrl.Manager, error) {
	o.Manager.Informers.Scheme = api.NewScheme()
	labels := client.CacheOf{Object: &corev1.ConfigMap{}, Informer: informer.InformerOptions{LabelSelector: ItemLabel}}
	o.Manager.Caches = append(o.Manager.Caches, labels)
	o.Workers = cmp.Or(o.Workers, 4)
	mgr, err := ctrl.NewManager(config, o.Manager)
	if err != nil {
		return nil, err
	}
	if err := index(ctx, mgr); err != nil {
		return nil, err
	}
	loop := ctrl.ControllerOptions{Workers: o.Workers}
	items := &ItemReconciler{
		Client: mgr.GetClient(), Events: mgr.GetEventRecorderFor("item-controller"),
		Print: o.Print,
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&api.Item{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&api.Category{}, items.followCategories()).
		WithOptions(loop).
		Complete(items)
	if err != nil {
		return nil, err
	}
	categories := &CategoryReconciler{Client: mgr.GetClient(), Events: mgr.GetEventRecorderFor("category-controller")}
	return mgr, ctrl.NewControllerManagedBy(mgr).
		For(&api.Category{}, ownStatusAside).
		Watches(&api.Item{}, handler.EnqueueMapped(categoryOf), ownStatusAside).
		Watches(&api.Category{}, handler.EnqueueMapped(categories.rivals), ownStatusAside).
		WithOptions(loop).
		Complete(categories)
}

// ownStatusAside drops updates of the status alone: a category does not depend on them.
var ownStatusAside = builder.WithPredicates(predicate.GenerationChanged[ctrl.Object]())

func index(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &api.Item{}, itemCategory, func(obj client.Object) []string {
		return []string{obj.(*api.Item).Spec.Category}
	})
	if err != nil {
		return err
	}
	return mgr.GetFieldIndexer().IndexField(ctx, &api.Category{}, categoryPrefix, func(obj client.Object) []string {
		return []string{obj.(*api.Category).Spec.Prefix}
	})
}

// followCategories queues the items that an event of a category affects: all of its items if all depend on the change,
// and one item if that got its number. (A category of a thousand items changes a thousand times while they are added.
// To queue all of them each time would make a million reconciles.)
func (r *ItemReconciler) followCategories() builder.Handler {
	all := handler.EnqueueMapped(r.ofCategory)
	return builder.HandlerFuncs{
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

// concernsAll reports whether the change of a category affects all of its items.
func concernsAll(before, now *api.Category) bool {
	return before.UID != now.UID || before.Spec != now.Spec ||
		(before.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) || stallOf(before) != stallOf(now)
}

func stallOf(c *api.Category) (message string) {
	if s := conditions.Get(c.Status.Conditions, conditions.Stalled); s != nil {
		return string(s.Status) + s.Message
	}
	return ""
}

// ofCategory returns requests for the items of a category.
func (r *ItemReconciler) ofCategory(ctx context.Context, category ctrl.Object) (requests []ctrl.Request) {
	var items api.ItemList
	err := r.List(ctx, &items, client.InNamespace(category.GetNamespace()),
		client.MatchingFields{itemCategory: category.GetName()}, client.Lagging)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Items of a category are not known") // the index exists from the start
	}
	for _, item := range items.Items {
		requests = append(requests, request(item.Namespace, item.Name))
	}
	return requests
}

// categoryOf returns a request for the category of an item.
func categoryOf(_ context.Context, item ctrl.Object) []ctrl.Request {
	return []ctrl.Request{request(item.GetNamespace(), item.(*api.Item).Spec.Category)}
}

// rivals returns requests for the categories with the same prefix as another. They may get the prefix when that
// category goes or changes its prefix.
func (r *CategoryReconciler) rivals(ctx context.Context, category ctrl.Object) (requests []ctrl.Request) {
	prefix := category.(*api.Category).Spec.Prefix
	var all api.CategoryList
	if err := r.List(ctx, &all, client.InNamespace(category.GetNamespace()),
		client.MatchingFields{categoryPrefix: prefix}, client.Lagging); err != nil {
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
