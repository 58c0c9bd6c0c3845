package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/flags"
	"github.com/flyball-dev/flyball/manager/metrics"
)

func main() {
	ctx, release := manager.SetupSignals(context.Background())
	defer release()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "ipam:", err)
		os.Exit(1)
	}
}

// run is main with its environment passed in.
func run(ctx context.Context, args []string, out, stderr io.Writer) error {
	if len(args) == 1 && args[0] == "story" {
		return tell(ctx, out)
	}
	process, o := flags.New(controller.Name), controller.Defaults()
	set := pflag.NewFlagSet("ipam", pflag.ContinueOnError)
	set.SetOutput(stderr)
	process.AddFlags(set)
	addFlags(set, &o)
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", set.Arg(0))
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
	if o.Metrics, err = controller.NewMetrics(registry.Registerer()); err != nil {
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
