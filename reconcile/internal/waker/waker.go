// Package waker runs a key again that relied on a write of this process which no cache ever showed. That happens when
// others delete or change the object before the watch delivers it. Then no event comes: this is the one change that
// level-triggering cannot see.
package waker

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/workqueue"
)

// Waker implements Waker of package writes for one key.
//
// It adds the key to the queue of the controller that read the write. A controller that takes the place of this one
// reconciles all keys, so it needs no waker of its predecessor.
type Waker[K comparable] struct {
	Queue *workqueue.Queue[K]
	Key   K
}

// Wake runs the key again because a cache passed a state of the object without showing it.
func (w Waker[K]) Wake(resource schema.GroupResource, object types.NamespacedName) {
	cause := workqueue.Cause{Source: resource.String(), Event: "Missed", Object: object.String(), Time: time.Now()}
	w.Queue.AddWithCause(w.Key, cause)
}
