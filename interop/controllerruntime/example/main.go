// Command example is an operator on controller-runtime whose cache, client and queue are controller-runtime's, or with --flyball
// Flyball's. Nothing else in it knows which.
package main

import (
	"flag"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	var o Options
	var elect bool
	flag.BoolVar(&o.Flyball, "flyball", false, "take cache, client and queue from Flyball")
	flag.BoolVar(&elect, "leader-elect", false, "work only while holding the lease cards in the namespace default")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(o, elect); err != nil {
		ctrl.Log.Error(err, "Stopped")
		os.Exit(1)
	}
}

func run(o Options, elect bool) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	options := ctrl.Options{
		Metrics:        server.Options{BindAddress: "127.0.0.1:8080"},
		LeaderElection: elect, LeaderElectionID: "cards", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
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
