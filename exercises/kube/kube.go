// Package kube has the types that the tasks share: what goes from one stage of a controller to the next. It needs only
// the standard library.
//
// The names are those of Kubernetes, and the types are smaller. This is where they occur, along the pipeline:
//
//	Server, List, Watch, Event    chapters 2 and 3: the client of task 02a is the Server of the reflector of task 03a
//	Cache, Store                  chapters 3 to 5: what a reflector fills
//	Change                        chapter 6: what a handler is called with
//	Queue, Result                 chapters 7 and 8: what a loop takes keys from, and what a reconcile returns
//	Service, Pod, Endpoints       chapter 10: what a controller reads and writes
//
// Because all stages use the same types, the parts that you write fit together: chapter 13 makes a controller of them.
package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Object is one state of an object. It has the metadata, which objects of all kinds have. States are shared, so do not
// change one.
type Object struct {
	Namespace, Name string
	// UID tells an object from an earlier one of the same name.
	UID string
	// Version is the resource version: the server gives each state another one, and later states have higher ones.
	Version             int
	Labels, Annotations map[string]string
	// JSON is the whole object, if it comes from a server.
	JSON json.RawMessage
}

// Key returns "namespace/name", or the name if there is no namespace. No other object of the kind has this key.
func (o *Object) Key() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// String returns "namespace/name@version".
func (o *Object) String() string { return fmt.Sprintf("%s@%d", o.Key(), o.Version) }

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Object) UnmarshalJSON(text []byte) error {
	var parsed struct {
		Metadata struct {
			Namespace, Name, UID string
			ResourceVersion      int `json:",string"`
			Labels, Annotations  map[string]string
		}
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		return err
	}
	m := parsed.Metadata
	*o = Object{m.Namespace, m.Name, m.UID, m.ResourceVersion, m.Labels, m.Annotations, bytes.Clone(text)}
	return nil
}

// The types of events.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Bookmark = "BOOKMARK"
)

// Event is a line of a watch. The object of a Bookmark has a version and no name: the watch has sent all changes up to
// that version.
type Event struct {
	Type   string
	Object *Object
}

// Change is a change of an object in a cache. Old is nil if the object was added, and New is nil if it was deleted.
type Change struct{ Old, New *Object }

// Result is the result of a reconcile that did not fail.
type Result struct {
	// RequeueAfter is the time after which the key runs again; zero if it need not.
	RequeueAfter time.Duration
}

// Queue is a work queue with delays, and with a count of failures for each key.
type Queue interface {
	// Add puts a key into the queue, unless it waits there already. AddAfter does so after d.
	Add(key string)
	AddAfter(key string, d time.Duration)
	// AddRateLimited adds a key that failed: after 5 ms, and after twice as long with each call since the last Forget.
	AddRateLimited(key string)
	// Failures returns how often AddRateLimited was called for the key since the last Forget. Forget ends its backoff.
	Failures(key string) int
	Forget(key string)
	// Get takes the next key, and waits for one. Done ends the work on it. After ShutDown, Get hands out the remaining
	// keys, and then returns false.
	Get() (key string, ok bool)
	Done(key string)
	ShutDown()
}

// Service asks for the addresses of all Pods of its namespace that its Selector matches. If the Selector is nil,
// something else writes the Endpoints.
type Service struct {
	Object
	Selector map[string]string
}

// Pod is a copy of a program.
type Pod struct {
	Object
	// IP is empty until the Pod has an address.
	IP string
	// A Ready Pod can answer requests. An Ended one has stopped forever, and a Deleting one has been asked to stop.
	Ready, Ended, Deleting bool
}

// Endpoints has the addresses of the Pods of the Service with the same key. Both lists are sorted.
type Endpoints struct {
	Object
	Ready, NotReady []string
}
