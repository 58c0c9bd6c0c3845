package builder

import (
	"errors"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// Controller is a controller made by a [Builder]: a reconcile.Controller that the manager can also run in several
// tenures and remove.
type Controller struct {
	*reconcile.Controller[reconcile.Request]
	parts *parts
}

var _ manager.Rebuilder = (*Controller)(nil)

// NeedLeaderElection reports whether the controller runs only while the process leads.
func (c *Controller) NeedLeaderElection() bool { return !c.parts.leaderless }

// Rebuild implements manager.Rebuilder. It returns a new controller that uses the same caches, so they stay filled.
func (c *Controller) Rebuild() (manager.Runnable, error) {
	if c.parts.released {
		return nil, errors.New("its informers were released: build it with a Builder again")
	}
	return c.parts.controller()
}

// Release releases the informers of this controller and of those that Rebuild made from it. An informer without other
// users ends. All these controllers must have ended before. The manager calls Release when it removes a controller.
func (c *Controller) Release() { c.parts.release() }

// parts is what a controller is built from, the first time and by Rebuild.
type parts struct {
	name             string
	reconciler       reconcile.Reconciler[reconcile.Request]
	options          reconcile.Options[reconcile.Request]
	leaderless       bool
	sources          []reconcile.Source[reconcile.Request]
	releaseInformers []func()
	released         bool
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
	for _, releaseInformer := range p.releaseInformers {
		releaseInformer()
	}
	p.releaseInformers, p.released = nil, true
}
