package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its environment passed in. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "items",
		Short:         "Keep stock: a tool with controllers inside",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown command %q; the commands are listed by items --help", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w; the flags are listed by %s --help", err, c.CommandPath())}
	})
	root.AddCommand(newApply(), newCount(), newDelete(), newRun(), newList(), newTenants(), newManagerCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "items: %v\n", err)
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return 2
	}
	return 1
}

// usageError is a command line that cannot be run.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// exactly rejects any number of arguments other than that of names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return &usageError{fmt.Errorf("%s is missing; see %s --help", names[len(args)], c.CommandPath())}
		case len(args) > len(names):
			return &usageError{fmt.Errorf("unexpected argument %q; see %s --help", args[len(names)], c.CommandPath())}
		}
		return nil
	}
}
