package manager_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// A controller that greets every ConfigMap, on an API server in this process.
func ExampleNew() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	m, err := manager.New(server.RESTConfig(), manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	maps, err := informer.For[*corev1.ConfigMap](m.Informers())
	if err != nil {
		fmt.Println(err)
		return
	}
	greeter := reconcile.New("greeter",
		reconcile.Func[reconcile.Request](func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if _, found := maps.Get(r.Namespace, r.Name); found && r.Namespace == "default" {
				fmt.Println("hello,", r.Name)
				stop()
			}
			return reconcile.Result{}, nil
		}), reconcile.Options[reconcile.Request]{})
	if err := greeter.Watch(source.Kind(maps, handler.EnqueueObject[*corev1.ConfigMap]())); err != nil {
		fmt.Println(err)
		return
	}
	if err := m.Add(greeter); err != nil {
		fmt.Println(err)
		return
	}
	world := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "world"}}
	if _, err := clientset(m).CoreV1().ConfigMaps("default").Create(ctx, world, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("run:", m.Run(ctx))
	// Output:
	// hello, world
	// run: <nil>
}
