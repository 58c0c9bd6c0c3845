// Package endpoints is task 10a: a small Endpoints controller.
//
// Build its four functions, in about 90 lines. Package kube has the objects, and api.go the interfaces. The queue and
// the loop of chapters 7 and 8 exist, and call Sync.
//
// The contract:
//
//   - Matches: a selector matches a Pod that has all labels of the selector, with the same values. A selector without
//     labels matches every Pod, and a nil selector matches none.
//   - Plan is a pure function: it decides on the one write, or none, and does not write. The addresses are sorted.
//     Those of ready Pods are in Ready, and those of other Pods in NotReady. A Pod without an IP, one that has ended
//     and one that is being deleted are in neither. If the Service is gone, its Endpoints are deleted, if there are
//     any. Those of a Service without a selector are left alone. If the Endpoints are right, nothing is written. The
//     Object of a Create has the namespace and the name of the Service. An Update has the Object of the current
//     Endpoints, because the server rejects it if somebody else has written since that Version.
//   - OnPod is the handler of Pod events. It queues the key of each Service whose Endpoints have to change now, and no
//     others. A Service selects Pods of its own namespace only.
//   - Sync reads the cache, calls Plan, and writes.
//
// Begin with the first test: Matches.
package endpoints

import "github.com/flyball-dev/flyball/exercises/kube"

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
	panic("not written yet: Matches")
}

// Plan decides what to do about the Endpoints of a Service. svc is nil if the Service is gone, and current is nil if
// there are no Endpoints. pods has all Pods of its namespace, in any order.
func Plan(svc *kube.Service, pods []*kube.Pod, current *kube.Endpoints) Change {
	panic("not written yet: Plan")
}

// OnPod is called for each event of a Pod. old is nil if the Pod is new, and pod is nil if it is gone.
func (c *Controller) OnPod(old, pod *kube.Pod) {
	panic("not written yet: OnPod")
}

// Sync writes the Endpoints of the Service with this key, if they are not right.
func (c *Controller) Sync(key string) error {
	panic("not written yet: Sync")
}
