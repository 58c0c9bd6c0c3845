package main

import (
	"context"
	"io"

	"github.com/spf13/pflag"

	"github.com/flyball-dev/flyball/examples/operators/internal/program"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/manager/flags"
	"github.com/flyball-dev/flyball/manager/metrics"
)

func main() { program.Main("ipam", run) }

// run is main with its environment passed in.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	process, o := flags.New(controller.Name), controller.Defaults()
	if err := program.Parse(process, func(set *pflag.FlagSet) { addFlags(set, &o) }, args, stderr); err != nil {
		return err
	}
	if err := process.Validate(); err != nil {
		return err
	}
	config, err := process.RESTConfig()
	if err != nil {
		return err
	}
	defer process.StartLogging(stderr)()
	registry := metrics.New()
	if o.Metrics, err = controller.NewMetrics(registry); err != nil {
		return err
	}
	mgr, err := controller.New(ctx, config, process.ManagerOptions(registry), o)
	if err != nil {
		return err
	}
	return mgr.Run(ctx)
}

func addFlags(set *pflag.FlagSet, o *controller.Options) {
	set.BoolVar(&o.CleanupTerminating, "cleanup-terminating-pods", o.CleanupTerminating,
		"take the addresses of pods that are being deleted before they are gone")
	set.BoolVar(&o.CleanupDisrupted, "cleanup-disrupted-pods", o.CleanupDisrupted,
		"take the addresses of pods that the taint manager has decided to delete")
	set.BoolVar(&o.VerifyNetworkStatus, "verify-network-status", o.VerifyNetworkStatus,
		"take the addresses that a running pod does not have by its network status")
	set.DurationVar(&o.MismatchGrace, "mismatch-grace", o.MismatchGrace,
		"how long a network status must lack an address before it is taken; 0 is 10s, negative not at all")
	set.DurationVar(&o.ShowFor, "show-for", o.ShowFor,
		"how long conditions say what was done; 0 is 30s, negative not at all")
	set.DurationVar(&o.MinInterval, "min-interval", o.MinInterval,
		"the least time between two passes over one pool; 0 is 200ms, negative none")
}
