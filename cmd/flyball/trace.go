package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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
