package shard_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/shard"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// A fleet gets an owner in its options, and uses it as shown here.
func ExampleNew() {
	local, err := localapi.New(localapi.Options{})
	if err != nil {
		panic(err)
	}
	defer local.Close()
	owner, err := shard.New(local.RESTConfig(), shard.Options{Identity: "replica-0", Settle: -1})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	ended := make(chan error, 1)
	go func() { ended <- owner.Run(ctx) }()

	tenure, err := owner.Acquire(ctx, multicluster.ClusterInfo{Name: "eu/shop"}, func(string) {})
	if err != nil {
		panic(err)
	}
	fmt.Println("may write:", tenure.Check() == nil)
	tenure.Release(ctx, nil)
	fmt.Println("may write:", tenure.Check() == nil)
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// may write: true
	// may write: false
	// ended: <nil>
}

// The objects of a controller are spread over replicas. This replica is the only one, and gets all parts.
func ExampleNewObjects() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	object := metav1.ObjectMeta{Namespace: "default", Name: "settings"}
	if err := server.Seed(context.Background(), &corev1.ConfigMap{ObjectMeta: object}); err != nil {
		panic(err)
	}
	owner, err := shard.New(server.RESTConfig(), shard.Options{Identity: "replica-0", Settle: -1})
	if err != nil {
		panic(err)
	}
	objects, err := shard.NewObjects(owner, shard.ObjectsOptions{Name: "settings", Parts: 2})
	if err != nil {
		panic(err)
	}
	caches, err := informer.NewFactory(server.RESTConfig(), informer.FactoryOptions{Namespaces: []string{"default"}})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	settings := reconcile.Func[reconcile.Request](func(_ context.Context,
		r reconcile.Request,
	) (reconcile.Result, error) {
		fmt.Println("reconcile", r)
		stop()
		return reconcile.Result{}, nil
	})
	control := func(ctx context.Context, p *shard.Part) error {
		maps, release, err := shard.PartInformer[*corev1.ConfigMap](ctx, caches, p, informer.InformerOptions{})
		if err != nil {
			return err
		}
		defer release()
		c := reconcile.New(fmt.Sprintf("settings-%d", p.Index), settings, reconcile.Options[reconcile.Request]{})
		if err := c.Watch(source.Kind(maps, handler.EnqueueObject[*corev1.ConfigMap]())); err != nil {
			return err
		}
		return c.Run(ctx)
	}

	cached := make(chan error, 1)
	go func() { cached <- caches.Run(ctx) }()
	err = owner.RunAround(ctx, func(ctx context.Context) error { return objects.Run(ctx, control) })
	fmt.Println("ended:", err, <-cached)
	// Output:
	// reconcile default/settings
	// ended: <nil> <nil>
}
