// Package endpoints is the solution of task 10a.
package endpoints

import (
	"fmt"
	"maps"
	"slices"
)

// Controller is the controller of Endpoints.
type Controller struct {
	Cache  Cache
	Writer Writer
	Queue  Queue
}

// Verb is a kind of write.
type Verb int

// The kinds of writes.
const (
	Leave Verb = iota // nothing is written
	Create
	Update
	Delete
)

// Change is the write that Plan decides on. Endpoints has the object for Create and Update.
type Change struct {
	Verb      Verb
	Endpoints *Endpoints
}

// Matches reports whether a Service selects a Pod with these labels.
func Matches(selector, labels map[string]string) bool {
	if selector == nil {
		return false
	}
	for key, want := range selector {
		if value, found := labels[key]; !found || value != want {
			return false
		}
	}
	return true
}

// Plan decides what to do about the Endpoints of a Service. svc is nil if the Service is gone, and current is nil if
// there are no Endpoints. pods has all Pods, in any order.
func Plan(svc *Service, pods []*Pod, current *Endpoints) Change {
	switch {
	case svc == nil && current == nil:
		return Change{Verb: Leave}
	case svc == nil:
		return Change{Verb: Delete}
	case svc.Selector == nil:
		return Change{Verb: Leave}
	}
	wanted := &Endpoints{Name: svc.Name}
	for _, pod := range pods {
		switch {
		case !Matches(svc.Selector, pod.Labels) || !published(pod):
		case pod.Ready:
			wanted.Ready = append(wanted.Ready, pod.IP)
		default:
			wanted.NotReady = append(wanted.NotReady, pod.IP)
		}
	}
	slices.Sort(wanted.Ready)
	slices.Sort(wanted.NotReady)
	switch {
	case current == nil:
		return Change{Create, wanted}
	case slices.Equal(current.Ready, wanted.Ready) && slices.Equal(current.NotReady, wanted.NotReady):
		return Change{Verb: Leave}
	}
	return Change{Update, wanted}
}

// published reports whether a Pod is in the Endpoints of the Services that select it.
func published(pod *Pod) bool { return pod.IP != "" && !pod.Ended && !pod.Deleting }

// OnPod is called for each event of a Pod. old is nil if the Pod is new, and pod is nil if it is gone.
func (c *Controller) OnPod(old, pod *Pod) {
	switch {
	case old == nil:
		c.add(pod.Labels, nil)
	case pod == nil:
		c.add(old.Labels, nil)
	case published(old) != published(pod) || old.Ready != pod.Ready || old.IP != pod.IP:
		c.add(old.Labels, nil)
		c.add(pod.Labels, nil)
	case !maps.Equal(old.Labels, pod.Labels):
		c.add(old.Labels, pod.Labels)
		c.add(pod.Labels, old.Labels)
	}
}

// add queues each Service that selects a Pod with these labels. It leaves out those that also select a Pod with the
// other labels, unless others is nil.
func (c *Controller) add(labels, others map[string]string) {
	for _, svc := range c.Cache.Services() {
		if Matches(svc.Selector, labels) && (others == nil || !Matches(svc.Selector, others)) {
			c.Queue.Add(svc.Name)
		}
	}
}

// Sync writes the Endpoints of a Service, if they are not right.
func (c *Controller) Sync(service string) error {
	svc, _ := c.Cache.Service(service)
	current, _ := c.Cache.Endpoints(service)
	var err error
	switch change := Plan(svc, c.Cache.Pods(), current); change.Verb {
	case Create:
		err = c.Writer.Create(change.Endpoints)
	case Update:
		err = c.Writer.Update(change.Endpoints)
	case Delete:
		err = c.Writer.Delete(service)
	}
	if err != nil {
		return fmt.Errorf("sync endpoints of %s: %w", service, err)
	}
	return nil
}
