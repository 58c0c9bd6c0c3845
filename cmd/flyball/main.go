// Command flyball runs the framework as a program. It has a demo, a small cluster in one process, and a manager that
// runs the reference controllers against a cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/internal/printable"
	"github.com/flyball-dev/flyball/manager"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its environment passed in. It returns the exit code: 0 on success, 1 if something failed during the
// run, 2 if the command line is wrong and nothing was started, those of [store.ExitCode], and 128 plus the number of
// the signal (130 for Ctrl-C) if a signal ended a command that would have ended by itself.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "flyball: %s\n", printable.Text(err.Error())) // a server may have written it
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return 2
	}
	if code, is := store.ExitCode(err); is {
		return code
	}
	if stopped := (*stoppedError)(nil); errors.As(err, &stopped) {
		return stopped.code()
	}
	return 1
}

// newRoot returns the command with all its commands. docs/cli.md shows their help.
func newRoot() *cobra.Command {
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
	root.AddCommand(newCreate(), newDemo(), newInit(), newLearn(), newManager(), newMigrate(), newRBAC(), newRun(),
		newServe(), newTop(), newTrace(), newVersion())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w; the flags are listed by %s --help", err, c.CommandPath())}
	})
	return root
}

// stoppedError is the error of a command that a signal ended before it was done. The user asked for that, so it is not
// a failure.
type stoppedError struct {
	signal os.Signal
	text   string
}

func (e *stoppedError) Error() string { return e.text }

// code returns the exit status that a shell reports for a process that was killed by the signal.
func (e *stoppedError) code() int {
	number, _ := e.signal.(syscall.Signal)
	return 128 + int(number)
}

// ended returns the error of a command that ends by itself: err, prefixed with the command's name, or a [stoppedError]
// on one line if a signal ended ctx.
func ended(ctx context.Context, command string, err error) error {
	if err == nil {
		return nil
	}
	var signal manager.SignalError
	_, storeFailed := store.ExitCode(err)
	if storeFailed || !errors.As(context.Cause(ctx), &signal) {
		return fmt.Errorf("%s: %w", command, err)
	}
	text := strings.ReplaceAll(err.Error(), ": "+signal.Error(), "") // the user who sent the signal knows
	return &stoppedError{signal: signal.Signal, text: command + ": " + strings.ReplaceAll(text, "\n", "; ")}
}

// quietly returns a context that a signal ends, for a command that plays the demo. The logs of the libraries would
// disturb what the command shows.
func quietly(ctx context.Context) (context.Context, context.CancelFunc) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	return manager.SetupSignals(klog.NewContext(ctx, klog.Logger{}))
}

// usageError is the error of an invalid command line.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// noArgs rejects arguments that are neither commands nor flags.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("unexpected argument %q; see %s --help", args[0], c.CommandPath())}
	}
	return nil
}
