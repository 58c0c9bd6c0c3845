package builder_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse/misusetest"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

func TestMisuse(t *testing.T) {
	m, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var nobody *requests
	var function reconcile.Func[reconcile.Request]
	var output *source.Output[reconcile.Request]
	r := &requests{}
	pods := func() *builder.Builder { return builder.ControllerManagedBy(m).For(&corev1.Pod{}) }
	nothing := handler.EnqueueMapped[informer.Object, reconcile.Request](nil)
	misusetest.Run(t, []misusetest.Call{
		misusetest.Of("ControllerManagedBy",
			func() error { return builder.ControllerManagedBy(nil).For(&corev1.Pod{}).Complete(r) },
			"the manager is nil; make one with manager.New"),
		misusetest.Of("no ControllerManagedBy", func() error { return new(builder.Builder).Complete(r) },
			"begin with ControllerManagedBy"),
		misusetest.Of("Complete", func() error { return pods().Complete(nil) }, "the reconciler is nil"),
		misusetest.Of("Complete with a typed nil", func() error { return pods().Complete(nobody) },
			"the reconciler is a nil *builder_test.requests"),
		misusetest.Of("Complete with a nil function", func() error { return pods().Complete(function) },
			"the reconciler is a nil reconcile.Func["),
		misusetest.Of("Named for nobody", func() error { return pods().Named("a b/ö\"").Complete(r) },
			`Named: the name "a b/ö\"" stands in logs, metrics and URLs`),
		misusetest.Of("Named nothing", func() error { return pods().Named("").Complete(r) },
			"without Named it is the kind's"),
		misusetest.Of("For typed nil",
			func() error { return builder.ControllerManagedBy(m).For((*corev1.Pod)(nil)).Complete(r) },
			"For: the object is nil"),
		misusetest.Of("Owns", func() error { return pods().Owns(nil).Complete(r) }, "Owns: the object is nil"),
		misusetest.Of("Watches nothing", func() error { return pods().Watches(&corev1.Node{}, nothing).Complete(r) },
			"the handler has no function"),
		misusetest.Of("WatchesRawSource", func() error { return pods().WatchesRawSource(output).Complete(r) },
			"WatchesRawSource: the source is nil"),
		misusetest.Of("WithPredicates",
			func() error { return pods().Owns(&corev1.Secret{}, builder.WithPredicates(nil)).Complete(r) },
			"Owns(*v1.Secret): a predicate is nil"),
		misusetest.Of("half a selector", func() error {
			return pods().Owns(&corev1.Secret{}, builder.WatchOptions{LabelSelector: "a in (b"}).Complete(r)
		}, `LabelSelector "a in (b"`),
	})
}
