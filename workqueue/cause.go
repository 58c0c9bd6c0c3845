package workqueue

import "time"

// Cause is one reason why a key was added: an event of a source, about an object, at a resource version. All fields are
// for logs, traces and people; the queue does not interpret them.
type Cause struct {
	// Source names what added the key, for example the watched kind.
	Source string
	// Event is what happened: Add, Update, Delete, Resync, Retry …
	Event string
	// Object is the object of the event, usually as namespace/name. It may differ from the key.
	Object string
	// ResourceVersion is the object's resource version at the event.
	ResourceVersion string
	// Time is when the source saw the event. The queue stores it as given.
	Time time.Time
}
