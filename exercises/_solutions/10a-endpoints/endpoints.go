// Package endpoints is the solution of task 10a.
package endpoints

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Controller is the controller of Endpoints.
type Controller struct {
	Cache  Cache
	Writer Writer
	Queue  kube.Queue
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
	Endpoints *kube.Endpoints
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
// there are no Endpoints. pods has all Pods of its namespace, in any order.
func Plan(svc *kube.Service, pods []*kube.Pod, current *kube.Endpoints) Change {
	switch {
	case svc == nil && current == nil:
		return Change{Verb: Leave}
	case svc == nil:
		return Change{Verb: Delete}
	case svc.Selector == nil:
		return Change{Verb: Leave}
	}
	wanted := &kube.Endpoints{Object: kube.Object{Namespace: svc.Namespace, Name: svc.Name}}
	for _, pod := range pods {
		switch e := entryOf(svc, pod); {
		case e.ip == "":
		case e.ready:
			wanted.Ready = append(wanted.Ready, e.ip)
		default:
			wanted.NotReady = append(wanted.NotReady, e.ip)
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
	wanted.Object = current.Object
	return Change{Update, wanted}
}

// entry is what the Endpoints of a Service show of a Pod. The IP is empty if they do not list it.
type entry struct {
	ip    string
	ready bool
}

func entryOf(svc *kube.Service, pod *kube.Pod) entry {
	if pod == nil || pod.IP == "" || pod.Ended || pod.Deleting || !Matches(svc.Selector, pod.Labels) {
		return entry{}
	}
	return entry{pod.IP, pod.Ready}
}

// OnPod is called for each event of a Pod. old is nil if the Pod is new, and pod is nil if it is gone.
func (c *Controller) OnPod(old, pod *kube.Pod) {
	for _, svc := range c.Cache.Services(cmp.Or(pod, old).Namespace) {
		if entryOf(svc, old) != entryOf(svc, pod) {
			c.Queue.Add(svc.Key())
		}
	}
}

// Sync writes the Endpoints of the Service with this key, if they are not right.
func (c *Controller) Sync(key string) error {
	svc, _ := c.Cache.Service(key)
	current, _ := c.Cache.Endpoints(key)
	var pods []*kube.Pod
	if svc != nil {
		pods = c.Cache.Pods(svc.Namespace)
	}
	var err error
	switch change := Plan(svc, pods, current); change.Verb {
	case Create:
		err = c.Writer.Create(change.Endpoints)
	case Update:
		err = c.Writer.Update(change.Endpoints)
	case Delete:
		err = c.Writer.Delete(key)
	}
	if err != nil {
		return fmt.Errorf("sync endpoints of %s: %w", key, err)
	}
	return nil
}
