package workqueue

import "time"

// Cause is one reason why a key was added: an event of a source, about an object, at a resource version.
// All fields are for people and traces; the queue compares none of them.
type Cause struct {
	// Source names what added the key, for example the kind that is watched.
	Source string
	// Event is what happened: Add, Update, Delete, Resync, Retry …
	Event string
	// Object is the object the event was about, usually namespace/name; it may differ from the key.
	Object string
	// ResourceVersion is the object's at the event.
	ResourceVersion string
	// Time is when the source saw the event. The queue stores it as given.
	Time time.Time
}
