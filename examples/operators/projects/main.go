package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/examples/operators/internal/program"
	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
	"github.com/flyball-dev/flyball/internal/kubeconfig"
	"github.com/flyball-dev/flyball/manager/flags"
	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/multicluster/providers"
)

func main() { program.Main("projects", run) }

// run is main with its environment passed in.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	process, more := flags.New(controller.Name), extra{}
	if err := program.Parse(process, more.addFlags, args, stderr); err != nil {
		return err
	}
	o, err := more.options()
	if err := errors.Join(process.Validate(), err); err != nil {
		return err
	}
	config, err := process.RESTConfig()
	if err != nil {
		return err
	}
	defer process.StartLogging(stderr)()
	operator, err := controller.New(config, process.ManagerOptions(metrics.New()), o)
	if err != nil {
		return err
	}
	return operator.Run(ctx)
}

// extra are the flags that only this operator has.
type extra struct {
	controller.Options
	internal             bool
	endpoint, kubeconfig string
}

func (e *extra) addFlags(set *pflag.FlagSet) {
	set.BoolVar(&e.internal, "internal-discovery", false,
		"find control planes by their services, from inside the cluster that they run in")
	set.StringVar(&e.endpoint, "control-plane-url", "",
		"a template of the URL of a control plane, as https://{{.Name}}.example.com; {{.Base}} is the API server of "+
			"the projects")
	set.StringVar(&e.kubeconfig, "control-plane-kubeconfig", "",
		"what control planes are reached with; empty: as the API server of the projects")
	set.StringVar(&e.LabelSelector, "project-selector", "", "restricts the fleet to some projects")
	set.DurationVar(&e.PurgeTimeout, "purge-timeout", 0,
		"how long the contents of a deleted project may take to go; 0 is 2m")
	set.DurationVar(&e.ForceAfter, "purge-force-after", 0,
		"when finalizers are taken off what is still there; 0 is half of the timeout")
	set.IntVar(&e.Parallel, "purge-parallel", 0, "how many requests one purge makes at once; 0 is 16")
	set.DurationVar(&e.Poll, "poll", 0, "how often a control plane that is being purged is looked at; 0 is 5s")
}

func (e *extra) options() (controller.Options, error) {
	o := e.Options
	o.Discovery = providers.External()
	if e.internal {
		o.Discovery = providers.Internal()
	}
	if e.endpoint != "" {
		o.Discovery.Endpoint = e.endpoint
	}
	if e.kubeconfig == "" {
		return o, nil
	}
	var err error
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: e.kubeconfig}
	if o.Config, err = kubeconfig.Load(rules, nil, "--control-plane-kubeconfig"); err != nil {
		return o, err
	}
	return o, nil
}
