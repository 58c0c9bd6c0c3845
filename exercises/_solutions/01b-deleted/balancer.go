// Package balancer is the solution of task 01b.
package balancer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Controller creates and deletes load balancers as the Services ask for them.
type Controller struct {
	services Services
	cloud    Cloud
	// cluster is the mark of this cluster on its load balancers, because other clusters use the same cloud.
	cluster string

	// queue has the names of the Services to look at.
	queue []string
}

// New returns the controller of a program that has just started.
func New(services Services, cloud Cloud, cluster string) *Controller {
	return &Controller{services: services, cloud: cloud, cluster: cluster}
}

// Start is called once, when the program starts. It queues every Service and every load balancer of this cluster,
// because a Service that was deleted while no program was running has left only its load balancer.
func (c *Controller) Start() error {
	all, err := c.services.List()
	if err != nil {
		return err
	}
	for _, s := range all {
		c.queue = append(c.queue, s.Name)
	}
	balancers, err := c.cloud.List()
	if err != nil {
		return err
	}
	for _, b := range balancers {
		if b.Cluster == c.cluster {
			c.queue = append(c.queue, b.Name)
		}
	}
	return nil
}

// Changed is called when a Service was created, changed or deleted.
func (c *Controller) Changed(name string) {
	c.queue = append(c.queue, name)
}

// Work looks at the Services in the queue. Those that fail stay in it.
func (c *Controller) Work() error {
	var failed []string
	var errs []error
	for _, name := range c.queue {
		if err := c.sync(name); err != nil {
			failed = append(failed, name)
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	c.queue = failed
	return errors.Join(errs...)
}

// sync creates or deletes the load balancer of one Service.
func (c *Controller) sync(name string) error {
	s, err := c.services.Get(name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return c.remove(name)
	case err != nil:
		return err
	case !s.Balanced:
		return c.remove(name)
	}
	return c.cloud.Ensure(Balancer{Name: name, Cluster: c.cluster})
}

// remove deletes the load balancer of a Service that is gone or does not want one. It asks the cloud whether there is
// one.
func (c *Controller) remove(name string) error {
	balancers, err := c.cloud.List()
	if err != nil {
		return err
	}
	if !slices.Contains(balancers, Balancer{Name: name, Cluster: c.cluster}) {
		return nil
	}
	return c.cloud.Delete(name)
}
