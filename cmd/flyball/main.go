// Command flyball is the framework as a program: a demo and a small cluster in one process, and a manager that runs the
// reference controllers against a cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/flyball-dev/flyball/cmd/flyball/store"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its world passed in. It returns the exit code: 0 when all went well, 1 when something failed
// while it ran, 2 when the command line is wrong and nothing was started, and those of [store.ExitCode].
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "flyball",
		Short:         "Kubernetes controllers on a pipeline of our own",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown command %q; the commands are listed by flyball --help", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newDemo(), newManager(), newRBAC(), newRun(), newServe(), newVersion())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w; the flags are listed by %s --help", err, c.CommandPath())}
	})
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "flyball: %v\n", err)
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return 2
	}
	if code, is := store.ExitCode(err); is {
		return code
	}
	return 1
}

// usageError is a command line that cannot be run.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// noArgs refuses words that are neither command nor flag.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("unexpected argument %q; see %s --help", args[0], c.CommandPath())}
	}
	return nil
}
