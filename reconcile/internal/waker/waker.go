// Package waker runs a key again after a cache has missed a write that the key relied on. A cache misses a write if its
// watch had a gap and another client changed or deleted the object in that gap. Then no event tells the key that the
// write was undone. This is the one change that level triggering cannot see.
package waker

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/workqueue"
)

// Waker implements Waker of package writes for one key.
//
// It adds the key to the queue of the controller that relied on the write. A controller that replaces this one
// reconciles all keys at its start, so it does not need the wakers of its predecessor.
type Waker[K comparable] struct {
	Queue *workqueue.Queue[K]
	Key   K
}

// Wake queues the key because a cache has passed a state of the object without showing it.
func (w Waker[K]) Wake(resource schema.GroupResource, object types.NamespacedName) {
	cause := workqueue.Cause{Source: resource.String(), Event: "Missed", Object: object.String(), Time: time.Now()}
	w.Queue.AddWithCause(w.Key, cause)
}
