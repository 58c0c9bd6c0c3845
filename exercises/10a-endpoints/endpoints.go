// Package endpoints is task 10a: the Endpoints controller in small.
//
// Build its four functions, in about 90 lines. File api.go has the objects and the interfaces: read it first. The queue
// and the loop of chapters 7 and 8 are given; they call Sync.
//
// The contract:
//
//   - Matches: a selector matches a Pod that has all of its labels with the same values. A selector without labels
//     matches every Pod, a nil one matches none.
//   - Plan is a pure function: it decides on the one write, if any, and writes nothing. Addresses are in order. A Pod
//     that is ready is in Ready, any other in NotReady. A Pod without IP, that has ended or is being deleted is in
//     neither. If the Service is gone, its Endpoints are deleted, if there are any. If the Endpoints are right, nothing
//     is written.
//   - OnPod is the handler of Pod events. It queues each Service whose Endpoints may be different now, and no other: a
//     change that Endpoints do not show queues nothing.
//   - Sync reads the cache, asks Plan, and writes.
//
// Begin with the first test: Matches.
package endpoints

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

// Change is the write that Plan decides on. Endpoints is what is to be created or updated.
type Change struct {
	Verb      Verb
	Endpoints *Endpoints
}

// Matches reports whether a Service selects a Pod with these labels.
func Matches(selector, labels map[string]string) bool {
	panic("not written yet: Matches")
}

// Plan decides what to do about the Endpoints of a Service. The Service is nil if it is gone, and current is nil if
// there are no Endpoints. The Pods are all of them, in any order.
func Plan(svc *Service, pods []*Pod, current *Endpoints) Change {
	panic("not written yet: Plan")
}

// OnPod is called for each event of a Pod: a new one has no old state, one that is gone has no new one.
func (c *Controller) OnPod(old, pod *Pod) {
	panic("not written yet: OnPod")
}

// Sync makes the Endpoints of a Service right.
func (c *Controller) Sync(service string) error {
	panic("not written yet: Sync")
}
