package multicluster_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// announced is a provider of fixed clusters.
type announced []multicluster.Announcement

func (announced) Name() string { return "announced" }

func (announced) Health() error { return nil }

func (a announced) Run(ctx context.Context, fleet multicluster.Fleet) error {
	for _, cluster := range a {
		if err := fleet.Join(cluster); err != nil {
			return err
		}
	}
	fleet.Synced()
	<-ctx.Done()
	return nil
}

// A controller is built once, and works on every cluster that a provider announces.
func ExampleNew() {
	var tb quiet
	localServer, eu := localapi.NewTest(tb), localapi.NewTest(tb, configMap("hello"))
	local, err := manager.New(localServer.RESTConfig(), manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fleet, err := multicluster.New(local, multicluster.Options{
		Providers: []multicluster.Provider{announced{{Name: "eu", Config: eu.RESTConfig()}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.TODO()))
	defer stop()
	reconciler := reconcile.Func[multicluster.Request](func(ctx context.Context,
		r multicluster.Request,
	) (reconcile.Result, error) {
		cluster, err := fleet.GetCluster(ctx, r.Cluster)
		if err != nil {
			return reconcile.Result{}, err
		}
		var object corev1.ConfigMap
		if err := cluster.Get(ctx, r.NamespacedName, &object); err != nil {
			return reconcile.Result{}, err
		}
		fmt.Println(r, "is in", cluster.Name())
		stop()
		return reconcile.Result{}, nil
	})
	if err := multicluster.ControllerManagedBy(fleet).For(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("run:", local.Run(ctx))
	// Output:
	// cluster://eu/default/hello is in eu
	// run: <nil>
}

// Mistakes are reported at once, with their remedies.
func ExampleBuilder_Complete() {
	local, err := manager.New(localapi.NewTest(quiet{}).RESTConfig(), manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fleet, err := multicluster.New(local, multicluster.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(multicluster.ControllerManagedBy(fleet).Owns(&corev1.Pod{}).Complete(nil))
	// Output:
	// build controller without a name: the reconciler is nil
	// a call of Owns without For: whose owner is meant? Call For(&Owner{}), or use Watches with a handler
}

// quiet takes the place of a test in an example.
type quiet struct{ localapi.TB }

func (quiet) Helper()        {}
func (quiet) Cleanup(func()) {}
