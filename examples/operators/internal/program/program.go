// Package program is what the main functions of the operators share: signals, the command line and the exit code.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/flags"
)

// Main calls run with the command line, and exits. run returns when the context is done, after a signal. It writes
// usage and logs to stderr.
func Main(name string, run func(ctx context.Context, args []string, stderr io.Writer) error) {
	ctx, release := manager.SetupSignals(context.Background())
	err := run(ctx, os.Args[1:], os.Stderr)
	release()
	os.Exit(Code(name, err, os.Stderr))
}

// Code writes the error of a program, and returns its exit code: 0 without an error and for --help, 2 for an invalid
// command line, 1 for all others.
func Code(name string, err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	if errors.As(err, new(*usageError)) {
		return 2
	}
	return 1
}

// usageError is a command line that cannot be parsed.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// Parse parses a command line into the flags that every operator has, and into those that add defines. There must be
// no arguments: "--dry-run false" is one, and it would be a dry run.
func Parse(process *flags.Flags, add func(*pflag.FlagSet), args []string, stderr io.Writer) error {
	set := pflag.NewFlagSet(process.Name, pflag.ContinueOnError)
	set.SetOutput(stderr)
	process.AddFlags(set)
	add(set)
	if err := set.Parse(args); err != nil {
		return &usageError{err}
	}
	if set.NArg() > 0 {
		return &usageError{fmt.Errorf("unexpected argument %q", set.Arg(0))}
	}
	return nil
}
