package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/flyball-dev/flyball/cmd/flyball/live"
	"github.com/flyball-dev/flyball/manager"
)

func newTop() *cobra.Command {
	t := live.Top{Client: &live.Client{}}
	c := &cobra.Command{
		Use:   "top",
		Short: "Show what a running manager is doing, as a live table",
		Long: `Show the resources that a running manager watches and its controllers, with their rates and sizes and what is unwell.
Enter shows the handlers of a resource, or the keys of a controller: those that are worked on, those that wait, and why.
If the output is no terminal, or with --once, the table is printed once.

The manager must run with --inspect-address. To try it without a cluster, run flyball demo --page in another terminal.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := t.Validate(); err != nil {
				return &usageError{err}
			}
			if err := t.Client.Open(); err != nil {
				return &usageError{err}
			}
			defer t.Client.Close()
			ctx, release := manager.SetupSignals(c.Context())
			defer release()
			t.In, t.Out = os.Stdin, c.OutOrStdout()
			out, isFile := t.Out.(*os.File)
			t.Once = t.Once || !isFile || !term.IsTerminal(int(out.Fd())) || !term.IsTerminal(int(os.Stdin.Fd()))
			return ended(ctx, "top", t.Run(ctx))
		},
	}
	fs := c.Flags()
	fs.DurationVar(&t.Interval, "interval", time.Second, "the time between two samples")
	fs.BoolVar(&t.Once, "once", false, "print the table once, with the rates of one interval")
	t.Client.AddFlags(fs)
	return c
}
