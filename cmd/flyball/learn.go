package main

import (
	"github.com/spf13/cobra"

	"github.com/flyball-dev/flyball/cmd/flyball/learn"
)

func newLearn() *cobra.Command {
	o := learn.Options{}
	c := &cobra.Command{
		Use:   "learn",
		Short: "Read the book and the documentation in a browser",
		Long: `Serve the book and the documentation on a loopback port. They are in this binary; no network is
needed. Where the text says "watch it happen", a button plays the demo in this process and opens its page.

With --dir, it also shows your progress in the tasks: what the last make learn found.

Ctrl-C ends it. With --output, the pages are written into a folder instead.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return &usageError{err}
			}
			ctx, release := quietly(c.Context())
			defer release()
			o.Out = c.OutOrStdout()
			return ended(ctx, "learn", learn.Run(ctx, o))
		},
	}
	c.Flags().StringVar(&o.Address, "address", learn.DefaultAddress,
		"the loopback address to serve at; port 0 means a free port")
	c.Flags().StringVar(&o.Dir, "dir", "",
		"a checkout of Flyball whose documentation is shown as it is at the moment, instead of the one in this binary")
	c.Flags().BoolVar(&o.Open, "open", false, "open the book in a browser")
	c.Flags().StringVar(&o.Output, "output", "", "write the pages into this folder, and serve nothing")
	return c
}
