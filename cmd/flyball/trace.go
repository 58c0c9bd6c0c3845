package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/flyball-dev/flyball/cmd/flyball/live"
	"github.com/flyball-dev/flyball/manager"
)

func newTrace() *cobra.Command {
	t := live.Trace{Client: &live.Client{}}
	var output string
	c := &cobra.Command{
		Use:   "trace KIND/NAME",
		Short: "Show what a running manager has done with an object, and why nothing happens to it",
		Long: `Show what a running manager has done with an object: the changes that its caches took over, the keys that handlers made of
them, the reconciles with their causes, log lines and writes. The last lines say what happens now, or what it waits for.

The manager must run with --inspect-address. To try it without a cluster, run flyball demo --page in another terminal.`,
		Example: `  flyball trace deployment/web
  flyball trace pods/web-7d4b9-x2x1z -n shop --follow`,
		Args: func(c *cobra.Command, args []string) error {
			kind, name, ok := strings.Cut(strings.Join(args, "/"), "/")
			if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
				return &usageError{fmt.Errorf("name one object as KIND/NAME, for example deployment/web; see %s --help",
					c.CommandPath())}
			}
			t.Object.Resource, t.Object.Name = kind, name
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return &usageError{fmt.Errorf("--output %q: it must be text or json", output)}
			}
			if err := t.Client.Open(); err != nil {
				return &usageError{err}
			}
			defer t.Client.Close()
			ctx, release := manager.SetupSignals(c.Context())
			defer release()
			t.AnyNamespace = t.Object.Namespace == ""
			t.Object.Namespace = cmp.Or(t.Object.Namespace, "default")
			t.Out, t.JSON = c.OutOrStdout(), output == "json"
			return ended(ctx, "trace", t.Run(ctx))
		},
	}
	fs := c.Flags()
	fs.StringVarP(&t.Object.Namespace, "namespace", "n", "",
		"the namespace of the object; without it, default, or the only one in which the manager knows the name")
	fs.BoolVarP(&t.Follow, "follow", "f", false, "go on with what happens from now on, until Ctrl-C")
	fs.StringVarP(&output, "output", "o", "text", "text or json; json with --follow is one step a line")
	t.Client.AddFlags(fs)
	return c
}

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
