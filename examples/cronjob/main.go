package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager/ctrl"
)

// newManager returns a manager that runs the controller. If pretend is not zero, Jobs complete by themselves after that
// time.
func newManager(ctx context.Context, config *rest.Config, pretend time.Duration) (*ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	addToScheme(scheme)
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	if err := (&Reconciler{Client: mgr.GetClient()}).SetupWithManager(ctx, mgr); err != nil {
		return nil, err
	}
	if pretend > 0 {
		return mgr, (&pretender{mgr.GetClient(), pretend}).SetupWithManager(mgr)
	}
	return mgr, nil
}

func main() {
	pretend := flag.Duration("pretend-jobs", 0,
		"complete every Job after that long, where no Job controller runs; 0 leaves Jobs alone")
	flag.Parse()
	config := ctrl.GetConfigOrDie()
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(ctx, config, *pretend)
	if err == nil {
		err = mgr.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
