package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers/project"
)

// newFleet builds the process: a manager of the cluster with the Projects and the originals, and the fleet that it
// runs.
func newFleet(config *rest.Config, d project.Discovery) (*multicluster.Manager, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{})
	if err != nil {
		return nil, err
	}
	provider, err := project.New(mgr, project.Options{Discovery: d})
	if err != nil {
		return nil, err
	}
	fleet, err := multicluster.New(mgr, multicluster.Options{Providers: []multicluster.Provider{provider}})
	if err != nil {
		return nil, err
	}
	return fleet, (&Syncer{Originals: mgr.GetClient(), Fleet: fleet}).SetupWithFleet()
}

func main() {
	ctx := ctrl.SetupSignalHandler()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "story":
		return tell(ctx, os.Stdout)
	case len(args) > 0:
		return fmt.Errorf("unknown argument %q", args[0])
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	fleet, err := newFleet(config, project.External())
	if err != nil {
		return err
	}
	return fleet.Local().Run(ctx)
}
