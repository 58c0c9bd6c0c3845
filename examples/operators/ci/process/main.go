package process

import (
	"context"
	"io"

	"github.com/flyball-dev/flyball/examples/operators/internal/program"
)

// Main runs the program with a command line until ctx is done or the kubeconfig changes.
func Main(ctx context.Context, args []string, stderr io.Writer) error {
	o := NewOptions()
	if err := program.Parse(o.Flags, o.addOwnFlags, args, stderr); err != nil {
		return err
	}
	defer o.StartLogging(stderr)()
	return Run(ctx, o)
}
