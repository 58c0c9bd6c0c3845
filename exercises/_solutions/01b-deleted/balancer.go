// Package balancer is the solution of task 01b.
package balancer

import (
	"errors"
	"fmt"
	"slices"
)

// Controller keeps the load balancers as the Services ask for.
type Controller struct {
	services Services
	cloud    Cloud
	// cluster is put into each load balancer: others use the same cloud.
	cluster string

	// queue has the names of the Services to look at.
	queue []string
}

// New returns the controller of a program that starts.
func New(services Services, cloud Cloud, cluster string) *Controller {
	return &Controller{services: services, cloud: cloud, cluster: cluster}
}

// Start is called once, when the program starts: every Service is looked at, and every load balancer of this cluster.
// Of a Service that was deleted while no program ran, the load balancer is all that is left.
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

// sync makes the load balancer of one Service as the Service asks for.
func (c *Controller) sync(name string) error {
	s, err := c.services.Get(name)
	switch {
	case errors.Is(err, ErrNotFound):
		return c.remove(name)
	case err != nil:
		return err
	case !s.Balanced:
		return c.remove(name)
	}
	return c.cloud.Ensure(Balancer{Name: name, Cluster: c.cluster})
}

// remove deletes the load balancer of a Service that is gone, or does not want one. The cloud says whether there is
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
