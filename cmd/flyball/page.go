package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flyball-dev/flyball/cmd/flyball/live"
)

// addPageFlags adds --page and --step. held is what --step holds up.
func addPageFlags(c *cobra.Command, address *string, step *bool, held string) {
	fs := c.Flags()
	fs.StringVar(address, "page", "",
		"show the controllers from inside at this loopback address until Ctrl-C; --page alone means "+
			live.DefaultAddress+". flyball trace and flyball top read it too")
	fs.Lookup("page").NoOptDefVal = live.DefaultAddress
	fs.BoolVar(step, "step", false, "hold up, until the page lets it through, "+held+". Implies --page")
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 && *address != "" {
			return &usageError{fmt.Errorf("unexpected argument %q; --page=ADDRESS needs the equals sign", args[0])}
		}
		return noArgs(c, args)
	}
	c.PreRun = func(*cobra.Command, []string) {
		if *step && *address == "" {
			*address = live.DefaultAddress
		}
	}
}
