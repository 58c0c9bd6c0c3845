package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/cmd/flyball/demo"
	"github.com/flyball-dev/flyball/internal/kubeconfig"
)

func newDemo() *cobra.Command {
	o := demo.Options{}
	var config string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Play the life of a Deployment on an embedded API, in this process",
		Long: `Play the life of a Deployment on Flyball's own pipeline, in one process: an embedded Kubernetes API, a fake kubelet and
the real controllers. The demo needs nothing and leaves nothing behind.

With --kubeconfig, the same story is played on a cluster, in a new namespace that is deleted at the end. The controllers
and kubelets of that cluster do the work; the demo only watches.

If all goes well, the last line begins with "demo: ok" and the exit code is 0. If a step does not reach its expected
outcome, the exit code is 1 and the last line says what was expected and what was found. Ctrl-C stops the demo; the exit
code is then 130.`,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, flag := range []string{"speed", "keep", "page", "step", "scenario"} {
				if config != "" && c.Flags().Changed(flag) {
					return &usageError{fmt.Errorf("--%s has no meaning with --kubeconfig", flag)}
				}
			}
			if err := o.Validate(); err != nil {
				return &usageError{err}
			}
			if config != "" {
				var err error
				rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: config}
				if o.Cluster, err = kubeconfig.Load(rules, nil, "--kubeconfig"); err != nil {
					return &usageError{err}
				}
			}
			ctx, release := quietly(c.Context())
			defer release()
			o.Out = c.OutOrStdout()
			return ended(ctx, "demo", demo.Run(ctx, o))
		},
	}
	c.Flags().StringVar(&config, "kubeconfig", "",
		"play the story on the cluster of this kubeconfig, with its controllers and its kubelets")
	c.Flags().StringSliceVar(&o.Images, "images", nil,
		"the two images of the story, for a cluster that cannot pull nginx:1.28,nginx:1.29")
	c.Flags().Float64Var(&o.Speed, "speed", 1,
		"the speed of the fake kubelet: at 1 it starts or stops a pod in about half a second, at 2 in a quarter of a "+
			"second")
	c.Flags().DurationVar(&o.Timeout, "timeout", time.Minute, "the maximum duration of one step")
	c.Flags().BoolVar(&o.Keep, "keep", false, "after the story, serve the API on a loopback port until Ctrl-C")
	addPageFlags(c, &o.Page, &o.Step, "each event, change, reconcile and write of the controllers")
	c.Flags().StringVar(&o.Scenario, "scenario", "",
		"with --step, the step of the story to begin with: "+strings.Join(demo.Scenarios(), ", "))
	return c
}
