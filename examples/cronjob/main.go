package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// newManager makes the process.
func newManager(ctx context.Context, config *rest.Config) (*ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	addToScheme(scheme)
	mgr, err := ctrl.NewManager(config, ctrl.Options{Informers: informer.FactoryOptions{Scheme: scheme}})
	if err != nil {
		return nil, err
	}
	return mgr, (&Reconciler{Client: mgr.GetClient()}).SetupWithManager(ctx, mgr)
}

func main() {
	config := ctrl.GetConfigOrDie()
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(ctx, config)
	if err == nil {
		err = mgr.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
