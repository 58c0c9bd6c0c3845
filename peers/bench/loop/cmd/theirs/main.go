// Theirs is the controller on controller-runtime, for cmd/loop to measure.
package main

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/flyball-dev/flyball/peers/bench/loop"
	"github.com/flyball-dev/flyball/peers/bench/loop/theirs"
)

func main() {
	loop.Main(theirs.System(func(*ctrl.Options, *controller.Options) {}))
}
