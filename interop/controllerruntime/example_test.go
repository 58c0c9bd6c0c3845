package controllerruntime_test

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/localapi"
)

func Example() {
	api, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Close()
	mgr, err := ctrl.NewManager(api.RESTConfig(), ctrl.Options{
		Metrics:   server.Options{BindAddress: "0"},
		NewCache:  controllerruntime.NewCache,
		NewClient: controllerruntime.NewClient,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{NewQueue: controllerruntime.NewQueue[reconcile.Request]}).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			var m corev1.ConfigMap
			if err := mgr.GetClient().Get(ctx, r.NamespacedName, &m); err != nil || m.Data["greeting"] != "" {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			m.Data = map[string]string{"greeting": "hello"}
			if err := mgr.GetClient().Update(ctx, &m); err != nil {
				return reconcile.Result{}, err
			}
			if err := mgr.GetClient().Get(ctx, r.NamespacedName, &m); err != nil {
				return reconcile.Result{}, err
			}
			fmt.Println("in the cache:", m.Data["greeting"])
			stop()
			return reconcile.Result{}, nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "card"}}
	direct, err := client.New(api.RESTConfig(), client.Options{})
	if err == nil {
		err = direct.Create(ctx, m)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			fmt.Println(err)
		}
	})
	wg.Wait()
	// Output: in the cache: hello
}
