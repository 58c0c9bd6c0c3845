// Package balancer is task 01b: load balancers that are never deleted.
//
// A Service is an object that gives Pods a common address. It may ask for a load balancer, which is a machine in a
// cloud and costs money. The controller below is called with the name of each Service that changes. It makes the cloud
// create or delete the load balancer of that name.
//
// Users find load balancers whose Services are gone. It happens after updates, when the program is stopped and started
// again, and the log has no error. kube-controller-manager v1.14.2 has this bug in
// pkg/controller/service/service_controller.go, and kubernetes/kubernetes#78124 reports it.
//
// Run the tests, read the code, and find out on which state it acts. Before you change anything, answer two questions:
// which state is the actual one, and where could the controller read it? File world.go has the API server and the
// cloud.
package balancer

import (
	"errors"
	"fmt"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Controller creates and deletes load balancers as the Services ask for them.
type Controller struct {
	services Services
	cloud    Cloud
	// cluster is the mark of this cluster on its load balancers, because other clusters use the same cloud.
	cluster string

	// known has the Services that have a load balancer.
	known map[string]bool
	// queue has the names of the Services to look at.
	queue []string
}

// New returns the controller of a program that has just started.
func New(services Services, cloud Cloud, cluster string) *Controller {
	return &Controller{services: services, cloud: cloud, cluster: cluster, known: map[string]bool{}}
}

// Start is called once, when the program starts. It queues every Service.
func (c *Controller) Start() error {
	all, err := c.services.List()
	if err != nil {
		return err
	}
	for _, s := range all {
		c.queue = append(c.queue, s.Name)
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
	if err := c.cloud.Ensure(Balancer{Name: name, Cluster: c.cluster}); err != nil {
		return err
	}
	c.known[name] = true
	return nil
}

// remove deletes the load balancer of a Service that is gone or does not want one.
func (c *Controller) remove(name string) error {
	if !c.known[name] {
		return nil // It never had one.
	}
	if err := c.cloud.Delete(name); err != nil {
		return err
	}
	delete(c.known, name)
	return nil
}
