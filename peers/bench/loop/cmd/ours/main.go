// Ours is the controller on Flyball, for cmd/loop to measure.
package main

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/peers/bench/loop"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

func main() {
	loop.Main(loop.System{
		Run: func(ctx context.Context, config *rest.Config, s loop.Setup) error {
			return run(ctx, config, s, func(b *builder.Builder) {
				b.For(s.For)
				if s.Owns != nil {
					b.Owns(s.Owns)
				}
			})
		},
		Feed: func(ctx context.Context, config *rest.Config, s loop.Setup, keys []types.NamespacedName) error {
			return run(ctx, config, s, func(b *builder.Builder) { b.Named("feed").WatchesRawSource(feed(keys)) })
		},
	})
}

// run runs a controller whose sources watch sets, with default options, and with metrics as controller-runtime has
// them.
func run(ctx context.Context, config *rest.Config, s loop.Setup, watch func(b *builder.Builder)) error {
	o := manager.Options{Scheme: s.Scheme, Metrics: metrics.New()}
	o.Informers.Resync = s.Resync
	mgr, err := manager.New(config, o)
	if err != nil {
		return err
	}
	b := builder.ControllerManagedBy(mgr).WithOptions(reconcile.Options[reconcile.Request]{Workers: s.Workers})
	watch(b)
	c := ourClient{mgr.GetClient()}
	err = b.Complete(reconcile.Func[reconcile.Request](
		func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, s.Reconcile(ctx, c, r.NamespacedName)
		}))
	if err != nil {
		return err
	}
	return mgr.Run(ctx)
}

// feed is a source that adds its keys once.
type feed []types.NamespacedName

func (f feed) Run(_ context.Context, out *reconcile.Sink[reconcile.Request], synced func()) error {
	to := out.For(workqueue.Cause{Event: "Fed"})
	for _, key := range f {
		to.Add(reconcile.Request{NamespacedName: key})
	}
	synced()
	return nil
}

// Repeats implements reconcile.Source.
func (f feed) Repeats() bool { return false }

func (feed) Health() error  { return nil }
func (feed) String() string { return "feed" }

// ourClient is a [loop.Client].
type ourClient struct{ client.Client }

func (c ourClient) Get(ctx context.Context, name types.NamespacedName, into loop.APIObject) error {
	return c.Client.Get(ctx, name, into)
}

func (c ourClient) Patch(ctx context.Context, changed, base loop.APIObject) error {
	return c.Client.Patch(ctx, changed, client.MergeFrom(base))
}

func (c ourClient) Create(ctx context.Context, obj loop.APIObject) error {
	return c.Client.Create(ctx, obj)
}

func (c ourClient) Update(ctx context.Context, obj loop.APIObject) error {
	return c.Client.Update(ctx, obj)
}

func (c ourClient) Delete(ctx context.Context, obj loop.APIObject) error {
	return c.Client.Delete(ctx, obj)
}

func (c ourClient) UpdateStatus(ctx context.Context, obj loop.APIObject) error {
	return c.Status().Update(ctx, obj)
}
