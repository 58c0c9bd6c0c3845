package reconcile_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse/misusetest"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// pointed is a reconciler whose method panics on a nil pointer.
type pointed struct{ calls int }

// Reconcile implements reconcile.Reconciler.
func (p *pointed) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	p.calls++
	return reconcile.Result{}, nil
}

func TestMisuse(t *testing.T) {
	type (
		eventHandler = handler.EventHandler[*corev1.Pod, reconcile.Request]
		filter       = predicate.Predicate[*corev1.Pod]
		feeds        = reconcile.Source[reconcile.Request]
	)
	runs := func(name string, r reconcile.Reconciler[reconcile.Request], s ...feeds) func() error {
		return func() error {
			c := reconcile.New(name, r, reconcile.Options[reconcile.Request]{})
			for _, s := range s {
				if err := c.Watch(s); err != nil {
					return err
				}
			}
			return c.Run(t.Context())
		}
	}
	var nobody *pointed
	factory, err := informer.NewFactory(&rest.Config{Host: "http://127.0.0.1:1"}, informer.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := informer.For[*corev1.Pod](factory)
	if err != nil {
		t.Fatal(err)
	}
	var function reconcile.Func[reconcile.Request]
	any := func(context.Context, *corev1.Pod) []reconcile.Request { return nil }
	misusetest.Run(t, []misusetest.Call{
		misusetest.Of("New without a name", runs("", &pointed{}), "the name is empty"),
		misusetest.Of("New with a name for nobody", runs("a b/ö\"", &pointed{}), "use letters and digits, and any of"),
		misusetest.Of("New without a reconciler", runs("a", nil), "the reconciler is nil"),
		misusetest.Of("New with a typed nil", runs("a", nobody), "the reconciler is a nil *reconcile_test.pointed"),
		misusetest.Of("New with a nil function", runs("a", function), "the reconciler is a nil reconcile.Func["),
		misusetest.Of("Watch", runs("a", &pointed{}, nil), "controller a: watch: the source is nil"),
		misusetest.Of("Chan", runs("a", &pointed{}, source.Chan[reconcile.Request]("news", nil)),
			"the channel is nil"),
		misusetest.Of("Every", runs("a", &pointed{}, source.Every[reconcile.Request](time.Second, nil)),
			"a function that returns keys"),
		misusetest.Of("Every at once",
			runs("a", &pointed{}, source.Every(0, func(context.Context) []reconcile.Request { return nil })),
			"a positive interval"),
		misusetest.Of("Kind", runs("a", &pointed{}, source.Kind(nil, handler.EnqueueMapped(any))),
			"watch *v1.Pod: the informer is nil"),
		misusetest.Of("Kind without functions",
			runs("a", &pointed{}, source.Kind[*corev1.Pod, reconcile.Request](pods, eventHandler{})),
			"the handler has no function"),
		misusetest.Of("EnqueueMapped",
			runs("a", &pointed{}, source.Kind(pods, handler.EnqueueMapped[*corev1.Pod, reconcile.Request](nil))),
			"the handler has no function"),
		misusetest.Of("EnqueueOwner", misusetest.Constructs(func() eventHandler {
			return handler.EnqueueOwner[*corev1.Pod](schema.GroupKind{}, handler.OwnerOptions{})
		}), "the kind is empty"),
		misusetest.Of("Filter",
			misusetest.Constructs(func() eventHandler { return handler.Filter(handler.EnqueueMapped(any), nil) }),
			"predicate 1 is nil"),
		misusetest.Of("Not", misusetest.Constructs(func() filter { return predicate.Not[*corev1.Pod](nil) }),
			"predicate: Not: predicate 1 is nil"),
		misusetest.Of("Matching", misusetest.Constructs(func() filter { return predicate.Matching[*corev1.Pod](nil) }),
			"the function is nil"),
	})
}
