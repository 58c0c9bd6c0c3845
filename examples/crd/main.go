package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/ctrl"
)

// newManager returns a manager that runs the controller.
func newManager(ctx context.Context, config *rest.Config, names NameServer) (*ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	addToScheme(scheme)
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	r := &Reconciler{Client: mgr.GetClient(), Names: names, Recorder: mgr.GetEventRecorderFor("website-controller")}
	return mgr, r.SetupWithManager(ctx, mgr)
}

// logged is a name server that only logs what it would do.
type logged struct{}

// Set implements [NameServer].
func (logged) Set(ctx context.Context, domain, target string) error {
	klog.FromContext(ctx).Info("Set name", "domain", domain, "target", target)
	return nil
}

// Remove implements [NameServer].
func (logged) Remove(ctx context.Context, domain, target string) error {
	klog.FromContext(ctx).Info("Remove name", "domain", domain, "target", target)
	return nil
}

func main() {
	config := ctrl.GetConfigOrDie()
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(ctx, config, logged{})
	if err == nil {
		err = mgr.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
