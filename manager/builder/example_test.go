package builder_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

// A pod wakes the ReplicaSet that owns it.
func ExampleControllerManagedBy() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	mgr, err := manager.New(server.RESTConfig(), manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	reconciler := reconcile.Func[reconcile.Request](func(_ context.Context,
		r reconcile.Request,
	) (reconcile.Result, error) {
		fmt.Println("reconcile", r)
		stop()
		return reconcile.Result{}, nil
	})
	err = builder.ControllerManagedBy(mgr).
		For(&appsv1.ReplicaSet{}).
		Owns(&corev1.Pod{}).
		Complete(reconciler)
	if err != nil {
		fmt.Println(err)
		return
	}
	yes := true
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: &yes}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-1", OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := mgr.GetClient().Create(ctx, pod); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("run:", mgr.Run(ctx))
	// Output:
	// reconcile default/web
	// run: <nil>
}

// Complete reports mistakes at once, each with its remedy.
func ExampleBuilder_Complete() {
	mgr, err := manager.New(localapi.NewTest(quiet{}).RESTConfig(), manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = builder.ControllerManagedBy(mgr).Owns(&corev1.Pod{}).Complete(nil)
	fmt.Println(err)
	// Output:
	// build controller without a name: the reconciler is nil
	// a call of Owns without For: whose owner is meant? Call For(&Owner{}), or use Watches with a handler
}

// quiet stands for a test in an example.
type quiet struct{ localapi.TB }

func (quiet) Helper()        {}
func (quiet) Cleanup(func()) {}
