package trace

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Subject is what steps are kept of: an object, or a key of a controller.
type Subject struct {
	// Resource is that of an object, with its group: "pods", "deployments.apps". It is empty for a key.
	Resource string
	// Controller is that of a key. It is empty for an object.
	Controller string
	// Namespace and Name are those of the object, or of the object that the key names. A key of another type is a text
	// in Name.
	Namespace, Name string
}

// Key returns "namespace/name", or the name alone.
func (s Subject) Key() string {
	if s.Namespace == "" {
		return s.Name
	}
	return s.Namespace + "/" + s.Name
}

// String returns the resource or the controller, and the key.
func (s Subject) String() string {
	if s.Controller != "" {
		return "controller " + s.Controller + " " + s.Key()
	}
	return s.Resource + " " + s.Key()
}

// Kind is what a step is.
type Kind uint8

// The kinds of steps.
const (
	// Received: a watch has brought an event about the object.
	Received Kind = iota + 1
	// Changed: a cache has taken over a new state of the object, and tells its handlers.
	Changed
	// Handled: a controller's handler has been called with a change of the object. Keys are those that it queued.
	Handled
	// Ran: a controller has reconciled the key.
	Ran
	// Wrote: a write was answered, or its answer was lost. It is a step of the object and of the key whose reconcile
	// sent it.
	Wrote
	// Waited: a read was held back, because the cache was behind a write of this process.
	Waited
	// Logged: the reconcile logged a line.
	Logged
)

// Step is one thing that has happened to a subject. Which fields are set depends on the kind.
type Step struct {
	// Number counts the steps of all subjects, from one.
	Number uint64
	// Time is when the step happened; of Ran, Wrote and Waited, when it began.
	Time time.Time
	Kind Kind

	// Event is "ADDED", "MODIFIED" or "DELETED" of Received; "Add", "Update" or "Delete" of Changed; the event of the
	// cause of Handled, which may be "Resync", too; and the verb of Wrote.
	Event string
	// Version is the resource version of the new state; of Received, that of the event; of Wrote, that in the answer.
	Version string
	// Old and New are the states before and after Changed. They are shared with the cache and must not be changed. They
	// are nil if the object was new, and in older steps.
	Old, New metav1.Object
	// states is where Old and New are as long as they are kept.
	states int
	// Initial: the change was one of the first list.
	Initial bool

	// Other is the controller of Handled, without a key. Of Wrote, it is the object in the steps of a key, and the key
	// in those of an object; it is zero if no reconcile sent the write.
	Other Subject
	// Keys are those that a handler has queued, at most eight; More is how many others there are.
	Keys []Key
	More int

	// Run is the number of the reconcile, which is unique in its controller: of Ran, Wrote, Waited and Logged.
	Run uint64
	// Queued is how long the key was ready, if the queue measures that.
	Queued time.Duration
	// Took is the duration of a reconcile, a write or a wait. It is zero while Outcome is empty.
	Took time.Duration
	// Attempt counts the failures in a row before a reconcile.
	Attempt int
	// Causes are why a reconcile ran.
	Causes []Cause
	// Outcome of Ran is empty while it runs; then "done", "requeue", "retry", "stale", "given up" or "cancelled". Of
	// Wrote it is the HTTP status, such as "409 Conflict", or "no answer".
	Outcome string
	// Err is why a reconcile, a write or a wait failed, or why the object of Received could not be decoded. It has only
	// the text of that error, up to a thousand bytes.
	Err error
	// Next is the delay that the reconciler asked for.
	Next time.Duration
	// Text is the form of the cache of Received and Changed, see [FormOf]; the subresource of Wrote; what was read of
	// Waited; and the line of Logged.
	Text string
}

// Cause is why a key is in a queue. Its fields are those of workqueue.Cause, so one converts to the other.
type Cause struct {
	Source, Event, Object, ResourceVersion string
	Time                                   time.Time
}

// Causes converts causes of a queue.
func Causes[C ~struct {
	Source, Event, Object, ResourceVersion string
	Time                                   time.Time
}](queued []C,
) []Cause {
	causes := make([]Cause, len(queued))
	for i, c := range queued {
		causes[i] = Cause(c)
	}
	return causes
}

// Key is a key that a handler has queued.
type Key struct {
	Namespace, Name string
	After           time.Duration
}

// mostKeys bounds the keys that a step names.
const mostKeys = 8
