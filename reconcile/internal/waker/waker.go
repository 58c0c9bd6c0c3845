// Package waker runs a key again that relied on a write of this process which no cache ever showed. That happens when
// others delete or change the object before the watch delivers it. Then no event comes: this is the one change that
// level-triggering cannot see.
package waker

import (
	"time"

	"github.com/flyball-dev/flyball/internal/ownwrites"
	"github.com/flyball-dev/flyball/workqueue"
)

// Waker implements [ownwrites.Waker] for one key.
//
// It adds the key to the queue of the controller that read the write. A controller that takes the place of this one
// reconciles all keys, so it needs no waker of its predecessor.
type Waker[K comparable] struct {
	Queue *workqueue.Queue[K]
	Key   K
}

// Wake implements [ownwrites.Waker].
func (w Waker[K]) Wake(m ownwrites.Missed) {
	cause := workqueue.Cause{Source: m.Resource.String(), Event: "Missed", Object: m.Key.String(), Time: time.Now()}
	w.Queue.AddWithCause(w.Key, cause)
}
