package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/cmd/flyball/demo"
	"github.com/flyball-dev/flyball/manager"
)

func newDemo() *cobra.Command {
	o := demo.Options{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Play the life of a Deployment on an embedded API, in this process",
		Long: `Play the life of a Deployment on our own pipeline, in one process: an embedded Kubernetes API, a fake kubelet
and the real controllers. Nothing is needed, nothing is left behind.

The last line begins with "demo: ok" and the exit code is 0; if a step does not come to what it should, the exit
code is 1 and the last line says what was expected and what is. Ctrl-C stops it; the exit code is then 130.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return &usageError{err}
			}
			// The story is what is shown; what the libraries have to say is not part of it.
			klog.LogToStderr(false)
			klog.SetOutput(io.Discard)
			ctx, release := manager.SetupSignals(klog.NewContext(c.Context(), klog.Logger{}))
			defer release()
			o.Out = c.OutOrStdout()
			return ended(ctx, "demo", demo.Run(ctx, o))
		},
	}
	c.Flags().Float64Var(&o.Speed, "speed", 1, "how fast the fake kubelet is: 1 starts or stops a pod in about half a second, 2 in a quarter")
	c.Flags().DurationVar(&o.Timeout, "timeout", time.Minute, "how long one step may take")
	c.Flags().BoolVar(&o.Keep, "keep", false, "go on after the story, with the API on a loopback port, until Ctrl-C")
	return c
}
