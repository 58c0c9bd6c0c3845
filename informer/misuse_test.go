package informer_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/reflector"
	"github.com/flyball-dev/flyball/internal/misuse/misusetest"
)

func TestMisuse(t *testing.T) {
	factory, err := informer.NewFactory(&rest.Config{Host: "http://127.0.0.1:1"}, informer.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := informer.For[*corev1.Pod](factory)
	if err != nil {
		t.Fatal(err)
	}
	with := func(o informer.InformerOptions) func() error {
		return func() error { _, err := informer.ForOptions[*corev1.Pod](factory, o); return err }
	}
	misusetest.Run(t, []misusetest.Call{
		misusetest.Of("NewFactory",
			func() error { _, err := informer.NewFactory(nil, informer.FactoryOptions{}); return err },
			"the config is nil"),
		misusetest.Of("For", func() error { _, err := informer.For[*corev1.Pod](nil); return err },
			"informer of *v1.Pod: the factory is nil"),
		misusetest.Of("ForOptions with half a selector", with(informer.InformerOptions{LabelSelector: "app in (a"}),
			`LabelSelector "app in (a"`),
		misusetest.Of("ForOptions with half a field", with(informer.InformerOptions{FieldSelector: "spec.nodeName"}),
			`FieldSelector "spec.nodeName"`),
		misusetest.Of("AddIndex", func() error { return pods.AddIndex("node", nil) },
			"an index function"),
		misusetest.Of("AddIndex without a name",
			func() error { return pods.AddIndex("", indexer.ByLabel[*corev1.Pod]("a")) }, "a name and"),
		misusetest.Of("RemoveHandler", func() error { return pods.RemoveHandler(context.Background(), nil) },
			"the registration is nil"),
		misusetest.Of("reflector.New", misusetest.Constructs(func() *reflector.Reflector[*corev1.Pod] {
			return reflector.New(nil, deltafifo.New[*corev1.Pod](),
				reflector.Options[*corev1.Pod]{})
		}), "the ListerWatcher or the DeltaFIFO is nil"),
		misusetest.Of("NewSharedInformer", misusetest.Constructs(func() *informer.SharedInformer[*corev1.Pod] {
			return informer.NewSharedInformer[*corev1.Pod](nil, informer.Options[*corev1.Pod]{})
		}), "the ListerWatcher or the DeltaFIFO is nil"),
		misusetest.Of("NewRESTListerWatcher", misusetest.Constructs(func() *listwatch.RESTListerWatcher[*corev1.Pod] {
			return listwatch.NewRESTListerWatcher[*corev1.Pod](nil, listwatch.RESTOptions{})
		}), "the client is nil"),
	})
}
