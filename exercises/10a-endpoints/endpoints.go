// Package endpoints is task 10a: a small Endpoints controller.
//
// Build its four functions, in about 90 lines. Read api.go first, which has the objects and the interfaces. The queue
// and the loop of chapters 7 and 8 exist, and call Sync.
//
// The contract:
//
//   - Matches: a selector matches a Pod that has all labels of the selector, with the same values. A selector without
//     labels matches every Pod, and a nil selector matches none.
//   - Plan is a pure function: it decides on the one write, or none, and does not write. The addresses are sorted.
//     Those of ready Pods are in Ready, and those of other Pods in NotReady. A Pod without an IP, one that has ended
//     and one that is being deleted are in neither. If the Service is gone, its Endpoints are deleted, if there are
//     any. If the Endpoints are right, nothing is written.
//   - OnPod is the handler of Pod events. It queues each Service whose Endpoints may be different now, and no others. A
//     change that does not show in Endpoints queues nothing.
//   - Sync reads the cache, calls Plan, and writes.
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

// Change is the write that Plan decides on. Endpoints has the object for Create and Update.
type Change struct {
	Verb      Verb
	Endpoints *Endpoints
}

// Matches reports whether a Service selects a Pod with these labels.
func Matches(selector, labels map[string]string) bool {
	panic("not written yet: Matches")
}

// Plan decides what to do about the Endpoints of a Service. svc is nil if the Service is gone, and current is nil if
// there are no Endpoints. pods has all Pods, in any order.
func Plan(svc *Service, pods []*Pod, current *Endpoints) Change {
	panic("not written yet: Plan")
}

// OnPod is called for each event of a Pod. old is nil if the Pod is new, and pod is nil if it is gone.
func (c *Controller) OnPod(old, pod *Pod) {
	panic("not written yet: OnPod")
}

// Sync writes the Endpoints of a Service, if they are not right.
func (c *Controller) Sync(service string) error {
	panic("not written yet: Sync")
}
