package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/multicluster"
	fleetmetrics "github.com/flyball-dev/flyball/multicluster/metrics"
	"github.com/flyball-dev/flyball/multicluster/providers"
	"github.com/flyball-dev/flyball/multicluster/shard"
)

// options say where clusters come from, and with whom they are shared.
type options struct {
	// kubeconfigs is a kubeconfig whose contexts are the clusters, or a directory of kubeconfigs, and secrets the
	// namespace of the Secrets that have kubeconfigs. If both are empty, the clusters are control planes of Projects,
	// found by discovery.
	kubeconfigs, secrets string
	discovery            providers.Discovery
	// replica is the name of this replica if it shares the clusters with others.
	replica string
	// metricsAddr serves /metrics.
	metricsAddr string
}

func (o *options) addFlags(set *flag.FlagSet) {
	set.StringVar(&o.kubeconfigs, "kubeconfigs", "",
		"the clusters are the contexts of this file, or the files of this directory")
	set.StringVar(&o.secrets, "secrets", "", "the clusters are the labelled Secrets of this namespace")
	set.StringVar(&o.replica, "replica", "",
		"share the clusters with other replicas; the name of this one, as that of its pod")
	set.StringVar(&o.metricsAddr, "metrics-addr", "", "the address that serves /metrics")
}

// newFleet builds the process: a manager of the cluster with the originals, and the fleet that it runs.
func newFleet(config *rest.Config, o options) (*multicluster.Manager, error) {
	mo := ctrl.Options{MetricsAddr: o.metricsAddr}
	registry := metrics.New()
	if o.metricsAddr != "" {
		mo.Metrics = registry
	}
	mgr, err := ctrl.NewManager(config, mo)
	if err != nil {
		return nil, err
	}
	provider, err := newProvider(mgr, o)
	if err != nil {
		return nil, err
	}
	fo := multicluster.Options{Providers: []multicluster.Provider{provider}}
	if o.replica != "" {
		owner, err := shard.New(config, shard.Options{Identity: o.replica})
		if err != nil {
			return nil, err
		}
		fo.Owner = owner
		registry.MustRegister(fleetmetrics.NewShard(owner))
	}
	fleet, err := multicluster.New(mgr, fo)
	if err != nil {
		return nil, err
	}
	registry.MustRegister(fleetmetrics.New(fleet))
	return fleet, (&Syncer{Originals: mgr.GetClient(), Fleet: fleet}).SetupWithFleet()
}

func newProvider(mgr ctrl.Manager, o options) (multicluster.Provider, error) {
	switch {
	case o.kubeconfigs != "" && o.secrets != "":
		return nil, errors.New("-kubeconfigs and -secrets exclude one another")
	case o.kubeconfigs != "":
		return providers.NewKubeconfig(o.kubeconfigs, providers.KubeconfigOptions{}), nil
	case o.secrets != "":
		return providers.NewSecrets(mgr, providers.SecretOptions{Namespace: o.secrets})
	}
	return providers.NewProjects(mgr, providers.ProjectOptions{Discovery: o.discovery})
}

func main() {
	ctx := ctrl.SetupSignalHandler()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	if len(args) == 1 && args[0] == "story" {
		return tell(ctx, os.Stdout)
	}
	var o options
	set := flag.NewFlagSet("fleet", flag.ContinueOnError)
	set.SetOutput(stderr)
	o.addFlags(set)
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", set.Arg(0))
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	fleet, err := newFleet(config, o)
	if err != nil {
		return err
	}
	return fleet.Local().Run(ctx)
}
