package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flyball-dev/flyball/examples/operators/items/stock"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/flags"
	"github.com/flyball-dev/flyball/manager/metrics"
)

func newManagerCommand() *cobra.Command {
	f := flags.New("items-manager")
	f.LeaderElection.Namespace = "items"
	workers := 4
	c := &cobra.Command{
		Use:   "manager",
		Short: "Run the same controllers on a cluster, until a signal",
		Long: `Run the controllers of Items and Categories on the cluster that --kubeconfig, $KUBECONFIG or the service account names. The definitions of
the resources and the permissions must be there: kubectl apply -k deploy.`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			err := f.Validate()
			if workers < 1 {
				err = errors.Join(err, fmt.Errorf("--workers %d: at least one is needed", workers))
			}
			if err != nil {
				return &usageError{err}
			}
			defer f.StartLogging(c.ErrOrStderr())()
			ctx, release := manager.SetupSignals(c.Context())
			defer release()
			config, err := f.RESTConfig()
			if err != nil {
				return &usageError{err}
			}
			mgr, err := stock.NewManager(ctx, config,
				stock.Options{Manager: f.ManagerOptions(metrics.New()), Workers: workers})
			if err != nil {
				return err
			}
			return mgr.Run(ctx)
		},
	}
	f.AddFlags(c.Flags())
	c.Flags().IntVar(&workers, "workers", workers, "how many items, and how many categories, are worked on at once")
	return c
}
