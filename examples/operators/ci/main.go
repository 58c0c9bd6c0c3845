// Command ci runs the operators of a CI system: see README.md.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

func main() {
	o := process.NewOptions()
	fs := pflag.NewFlagSet("ci", pflag.ExitOnError)
	o.AddFlags(fs)
	_ = fs.Parse(os.Args[1:]) // which ends the process
	stop := o.StartLogging(os.Stderr)
	err := process.Run(ctrl.SetupSignalHandler(), o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
