package builder

import (
	"errors"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// Controller is a built one: a reconcile.Controller, and what the manager needs to run it in several tenures and to remove it.
type Controller struct {
	*reconcile.Controller[reconcile.Request]
	parts *parts
}

var _ manager.Rebuilder = (*Controller)(nil)

// NeedLeaderElection says whether it runs only while the process leads.
func (c *Controller) NeedLeaderElection() bool { return !c.parts.leaderless }

// Rebuild implements manager.Rebuilder: a fresh controller on the same caches, which stay warm.
func (c *Controller) Rebuild() (manager.Runnable, error) {
	if c.parts.released {
		return nil, errors.New("its informers were released: build it with a Builder again")
	}
	return c.parts.controller()
}

// Release gives the informers back that were taken for the controller and those it was rebuilt as; one that nobody else uses
// ends. Call it when they do not run any more; the manager does when it removes them.
func (c *Controller) Release() { c.parts.release() }

// parts are what a controller is made of, each time.
type parts struct {
	name       string
	reconciler reconcile.Reconciler[reconcile.Request]
	options    reconcile.Options[reconcile.Request]
	leaderless bool
	sources    []reconcile.Source[reconcile.Request]
	giveBack   []func()
	released   bool
}

func (p *parts) controller() (*Controller, error) {
	c := reconcile.New(p.name, p.reconciler, p.options)
	for _, s := range p.sources {
		if err := c.Watch(s); err != nil {
			return nil, err
		}
	}
	return &Controller{Controller: c, parts: p}, nil
}

func (p *parts) release() {
	for _, giveBack := range p.giveBack {
		giveBack()
	}
	p.giveBack, p.released = nil, true
}
