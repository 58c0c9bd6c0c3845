package stock

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
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
func NewManager(ctx context.Context, config *rest.Config, o Options) (*ctrl.Manager, error) {
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

func index(ctx context.Context, mgr *ctrl.Manager) error {
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
