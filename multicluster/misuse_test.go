package multicluster_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/misuse/misusetest"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// forgotten is a provider of which the test has only a nil pointer.
type forgotten struct{ multicluster.Provider }

func TestMisuse(t *testing.T) {
	local, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := multicluster.New(local, multicluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var nobody *forgotten
	var nothing reconcile.Func[multicluster.Request]
	idle := reconcile.Func[multicluster.Request](func(context.Context, multicluster.Request) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	})
	pods := func() *multicluster.Builder { return multicluster.ControllerManagedBy(fleet).For(&corev1.Pod{}) }
	type one = reconcile.Reconciler[reconcile.Request]
	misusetest.Run(t, []misusetest.Call{
		misusetest.Of("New", func() error { _, err := multicluster.New(nil, multicluster.Options{}); return err },
			"the local manager is nil"),
		misusetest.Of("New with a nil provider", func() error {
			_, err := multicluster.New(local,
				multicluster.Options{Name: "other", Providers: []multicluster.Provider{nobody}})
			return err
		}, "Providers[0] is nil"),
		misusetest.Of("ControllerManagedBy",
			func() error { return multicluster.ControllerManagedBy(nil).For(&corev1.Pod{}).Complete(idle) },
			"the fleet is nil"),
		misusetest.Of("no ControllerManagedBy", func() error { return new(multicluster.Builder).Complete(idle) },
			"begin with ControllerManagedBy"),
		misusetest.Of("Complete", func() error { return pods().Complete(nothing) },
			"the reconciler is a nil reconcile.Func["),
		misusetest.Of("Named for nobody", func() error { return pods().Named("a b").Complete(idle) },
			`the name "a b" stands in logs`),
		misusetest.Of("For typed nil",
			func() error { return multicluster.ControllerManagedBy(fleet).For((*corev1.Pod)(nil)).Complete(idle) },
			"For: the object is nil"),
		misusetest.Of("WithPredicates",
			func() error { return pods().Owns(&corev1.Secret{}, builder.WithPredicates(nil)).Complete(idle) },
			"a predicate is nil"),
		misusetest.Of("PerCluster",
			misusetest.Constructs(func() reconcile.Reconciler[multicluster.Request] {
				return multicluster.PerCluster(nil)
			}),
			"the function that builds reconcilers is nil"),
		misusetest.Of("ForSingleCluster",
			misusetest.Constructs(func() one { return multicluster.ForSingleCluster(nil, idle) }),
			"the cluster or the reconciler is nil"),
		misusetest.Of("ForSingleCluster without a reconciler",
			misusetest.Constructs(func() one {
				return multicluster.ForSingleCluster(multicluster.ClusterOf(local), nothing)
			}),
			"the cluster or the reconciler is nil"),
		misusetest.Of("ClusterOf",
			misusetest.Constructs(func() *multicluster.Cluster { return multicluster.ClusterOf(nil) }),
			"the manager is nil"),
		misusetest.Of("MatchSelector",
			misusetest.Constructs(func() func(multicluster.ClusterInfo) bool {
				return multicluster.MatchSelector(nil)
			}),
			"labels.Everything means all"),
	})
}
