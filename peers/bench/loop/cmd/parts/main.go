// Parts is the controller on controller-runtime with our queue, cache and client, for cmd/loop to measure.
package main

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/peers/bench/loop"
	"github.com/flyball-dev/flyball/peers/bench/loop/theirs"
)

func main() {
	loop.Main(theirs.System(func(m *ctrl.Options, c *controller.Options) {
		m.NewCache, m.NewClient = controllerruntime.NewCache, controllerruntime.NewClient
		c.NewQueue = controllerruntime.NewQueue[reconcile.Request]
	}))
}
