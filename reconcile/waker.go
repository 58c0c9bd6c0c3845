package reconcile

import (
	"time"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/workqueue"
)

// waker runs a key again that acted on an own write which a cache never showed. Others changed or deleted the object
// before the watch brought it, so no event tells of it: it is the one change that level-triggering cannot see.
//
// It is of one controller. The one that takes its place, in the next tenure of the process, say, reconciles all keys
// anew; each that then reads the same write is woken by its own.
type waker[K comparable] struct {
	queue *workqueue.Queue[K]
	key   K
}

// Wake implements [client.Waker].
func (w waker[K]) Wake(m client.Missed) {
	cause := workqueue.Cause{Source: m.Resource.String(), Event: "Missed", Object: m.Key.String(), Time: time.Now()}
	w.queue.AddWithCause(w.key, cause)
}
