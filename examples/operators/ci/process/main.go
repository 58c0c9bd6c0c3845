package process

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/flyball-dev/flyball/manager/ctrl"
)

// Main runs the program with a command line and returns the exit code: 0 when it was stopped, when the kubeconfig has
// changed, and for --help; 1 for an error; 2 for an invalid command line. It writes all errors to stderr.
func Main(args []string, stderr io.Writer) int {
	o := NewOptions()
	fs := pflag.NewFlagSet("ci", pflag.ContinueOnError)
	fs.SetOutput(stderr)
	o.AddFlags(fs)
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err == nil && fs.NArg() > 0: // "--dry-run false" has one: it would be a dry run
		err = fmt.Errorf("there are no arguments: what is %q?", strings.Join(fs.Args(), " "))
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	stop := o.StartLogging(stderr)
	err = Run(ctrl.SetupSignalHandler(), o)
	stop()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
