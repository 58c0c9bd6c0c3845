// Command example is an operator on controller-runtime. With --flyball it uses Flyball's cache, client and queue
// instead of controller-runtime's. With --once it brings everything up to date, prints what it did, and exits. The
// operator's own code is the same in all cases.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
	own "github.com/flyball-dev/flyball/manager"
)

func main() {
	var o Options
	var elect, justOnce bool
	var metrics, pprof string
	flag.BoolVar(&o.Flyball, "flyball", false, "take cache, client and queue from Flyball")
	flag.BoolVar(&o.Lean, "lean", false, "with --flyball: no managed fields, and one copy in memory of equal values")
	flag.StringVar(&metrics, "metrics", "127.0.0.1:8080", "address of the metrics server; 0 means none")
	flag.StringVar(&pprof, "pprof", "0", "address of the server of profiles; 0 means none")
	flag.BoolVar(&elect, "leader-elect", false, "work only while holding the lease cards in the namespace default")
	flag.BoolVar(&justOnce, "once", false, "bring everything up to date and exit")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(o, metrics, pprof, elect, justOnce); err != nil {
		ctrl.Log.Error(err, "Stopped")
		os.Exit(1)
	}
}

func run(o Options, metrics, pprof string, elect, justOnce bool) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	if justOnce {
		summary, err := once(ctrl.SetupSignalHandler(), config)
		fmt.Printf("%d reconciles, %d of them failed, in %v\n", summary.Processed, summary.Errors,
			summary.Duration.Round(time.Millisecond))
		return err
	}
	options := ctrl.Options{
		Metrics:          server.Options{BindAddress: metrics},
		PprofBindAddress: pprof,
		LeaderElection:   elect, LeaderElectionID: "cards", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: true,
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	}
	o.Apply(&options)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if err := (&Cards{mgr.GetClient()}).SetupWithManager(ctx, mgr, o); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// once runs the operator until there is nothing more to do.
func once(ctx context.Context, config *rest.Config) (own.Summary, error) {
	mgr, err := controllerruntime.NewManager(config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		Client:  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return own.Summary{}, err
	}
	if err := (&Cards{mgr.GetClient()}).SetupWithManager(ctx, mgr, Options{}); err != nil {
		return own.Summary{}, err
	}
	return mgr.RunUntilIdle(ctx, own.IdleOptions{})
}
