// Command hello is a minimal but complete controller: for every Deployment it keeps a ConfigMap with a greeting.
// It connects to the cluster that $KUBECONFIG or ~/.kube/config names.
package main

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// Greeter greets Deployments.
type Greeter struct{ client.Client }

// Reconcile creates or updates the greeting of one Deployment.
func (g *Greeter) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var deployment appsv1.Deployment
	if err := g.Get(ctx, r.NamespacedName, &deployment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	greeting := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name + "-greeting"}}
	_, err := ctrl.CreateOrUpdate(ctx, g, greeting, func() error {
		greeting.Data = map[string]string{"text": "hello, " + deployment.Name}
		return ctrl.SetControllerReference(&deployment, greeting, g.Scheme())
	})
	return ctrl.Result{}, err
}

// SetupWithManager builds the controller. It watches Deployments, and the ConfigMaps that they own.
func (g *Greeter) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).Complete(g)
}

// newManager returns a manager that runs Greeter.
func newManager(config *rest.Config) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{})
	if err != nil {
		return nil, err
	}
	return mgr, (&Greeter{mgr.GetClient()}).SetupWithManager(mgr)
}

func main() {
	config := ctrl.GetConfigOrDie()
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(config)
	if err == nil {
		err = mgr.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
