// Package theirs is the controller on controller-runtime, for cmd/loop to measure.
package theirs

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flyball-dev/flyball/peers/bench/loop"
)

// System returns controller-runtime with its default options as change leaves them.
func System(change func(*ctrl.Options, *controller.Options)) loop.System {
	return loop.System{
		Run: func(ctx context.Context, config *rest.Config, s loop.Setup) error {
			return run(ctx, config, s, change, func(b *ctrl.Builder) {
				b.For(s.For)
				if s.Owns != nil {
					b.Owns(s.Owns)
				}
			})
		},
		Feed: func(ctx context.Context, config *rest.Config, s loop.Setup, keys []types.NamespacedName) error {
			return run(ctx, config, s, change, func(b *ctrl.Builder) { b.Named("feed").WatchesRawSource(feed(keys)) })
		},
	}
}

// feed returns a source that adds its keys once.
func feed(keys []types.NamespacedName) source.Func {
	return func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			for _, key := range keys {
				q.Add(reconcile.Request{NamespacedName: key})
			}
		}()
		return nil
	}
}

// run runs a controller whose sources watch sets.
func run(
	ctx context.Context, config *rest.Config, s loop.Setup, change func(*ctrl.Options, *controller.Options),
	watch func(b *ctrl.Builder),
) error {
	ctrl.SetLogger(klog.Background())
	o := ctrl.Options{Scheme: s.Scheme, Metrics: server.Options{BindAddress: "0"}}
	if s.Resync > 0 {
		o.Cache.SyncPeriod = &s.Resync
	}
	c := controller.Options{MaxConcurrentReconciles: s.Workers}
	change(&o, &c)
	mgr, err := ctrl.NewManager(config, o)
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).WithOptions(c)
	watch(b)
	from := theirClient{mgr.GetClient()}
	err = b.Complete(reconcile.Func(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{}, s.Reconcile(ctx, from, r.NamespacedName)
	}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// theirClient is a [loop.Client].
type theirClient struct{ client.Client }

func (c theirClient) Get(ctx context.Context, name types.NamespacedName, into loop.APIObject) error {
	return c.Client.Get(ctx, name, into)
}

func (c theirClient) Patch(ctx context.Context, changed, base loop.APIObject) error {
	return c.Client.Patch(ctx, changed, client.MergeFrom(base))
}

func (c theirClient) Create(ctx context.Context, obj loop.APIObject) error {
	return c.Client.Create(ctx, obj)
}

func (c theirClient) Update(ctx context.Context, obj loop.APIObject) error {
	return c.Client.Update(ctx, obj)
}

func (c theirClient) Delete(ctx context.Context, obj loop.APIObject) error {
	return c.Client.Delete(ctx, obj)
}

func (c theirClient) UpdateStatus(ctx context.Context, obj loop.APIObject) error {
	return c.Status().Update(ctx, obj)
}
