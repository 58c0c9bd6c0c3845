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
	"github.com/flyball-dev/flyball/manager/webhook"
)

// options are those of the command line.
type options struct {
	// pretend is the time after which Jobs complete by themselves. Zero leaves them alone.
	pretend time.Duration
	// webhooks makes the manager serve the webhooks, on loopback, and keep their certificate.
	webhooks bool
}

// serving returns where the webhooks are served: nowhere, if that is off.
func (o options) serving() webhook.Options {
	if !o.webhooks {
		return webhook.Options{Port: -1}
	}
	return webhook.Options{Host: "127.0.0.1", Certificates: webhook.Certificates{
		Namespace: "default", Secret: "cronjob-webhooks", Service: "cronjob-webhooks",
		MutatingWebhooks: []string{"cronjobs"}, ValidatingWebhooks: []string{"cronjobs"},
	}}
}

// newManager returns a manager that runs the controller and the webhooks.
func newManager(ctx context.Context, config *rest.Config, o options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	addToScheme(scheme)
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Webhook: o.serving()})
	if err != nil {
		return nil, err
	}
	if err := (&Reconciler{Client: mgr.GetClient()}).SetupWithManager(ctx, mgr); err != nil {
		return nil, err
	}
	if err := setupWebhooks(mgr); err != nil {
		return nil, err
	}
	if o.pretend > 0 {
		return mgr, (&pretender{mgr.GetClient(), o.pretend}).SetupWithManager(mgr)
	}
	return mgr, nil
}

func main() {
	var o options
	flag.DurationVar(&o.pretend, "pretend-jobs", 0,
		"complete every Job after that long, where no Job controller runs; 0 leaves Jobs alone")
	flag.BoolVar(&o.webhooks, "webhooks", false,
		"serve the webhooks on 127.0.0.1:9443, and keep their certificate in the Secret default/cronjob-webhooks")
	flag.Parse()
	config := ctrl.GetConfigOrDie()
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(ctx, config, o)
	if err == nil {
		err = mgr.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
