package multiclusterruntime_test

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mccontroller "sigs.k8s.io/multicluster-runtime/pkg/controller"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/providers/clusters"

	"github.com/flyball-dev/flyball/interop/multiclusterruntime"
	"github.com/flyball-dev/flyball/localapi"
)

// greeter is a reconciler as multicluster-runtime has them.
type greeter struct {
	mcmanager.Manager
	done func()
}

func (g *greeter) Reconcile(ctx context.Context, r mcreconcile.Request) (ctrl.Result, error) {
	c, err := g.GetCluster(ctx, r.ClusterName)
	if err != nil {
		return ctrl.Result{}, err
	}
	var cm corev1.ConfigMap
	if err := c.GetClient().Get(ctx, r.NamespacedName, &cm); err != nil {
		return ctrl.Result{}, err
	}
	cm.Data = map[string]string{"greeting": "hello " + r.ClusterName.String()}
	if err := c.GetClient().Update(ctx, &cm); err != nil {
		return ctrl.Result{}, err
	}
	var again corev1.ConfigMap // The cache shows what was just written.
	if err := c.GetClient().Get(ctx, r.NamespacedName, &again); err != nil {
		return ctrl.Result{}, err
	}
	fmt.Println(again.Data["greeting"])
	g.done()
	return ctrl.Result{}, nil
}

func ExampleNewManager() {
	log.SetLogger(logr.Discard())
	hub, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hub.Close()
	eu, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eu.Close()
	if err := eu.Seed(context.Background(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "card"},
	}); err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	provider := clusters.New()
	mgr, err := multiclusterruntime.NewManager(hub.RESTConfig(), provider, manager.Options{
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = mcbuilder.ControllerManagedBy(mgr).Named("greeter").For(&corev1.ConfigMap{}).
		WithOptions(mccontroller.Options{NewQueue: multiclusterruntime.NewQueue}).
		Complete(&greeter{mgr, stop})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := multiclusterruntime.NewCluster(eu.RESTConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := provider.Add(ctx, "eu", c); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("run:", mgr.Start(ctx))
	// Output:
	// hello eu
	// run: <nil>
}
