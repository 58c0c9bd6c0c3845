// Package waker runs a key again that acted on an own write which a cache never showed. Others changed or deleted the
// object before the watch brought it, so no event reports it: it is the one change that level-triggering cannot see.
package waker

import (
	"time"

	"github.com/flyball-dev/flyball/internal/ownwrites"
	"github.com/flyball-dev/flyball/workqueue"
)

// Waker implements [ownwrites.Waker] for one key.
//
// It is of one controller. The one that takes its place, in the next tenure of the process, say, reconciles all keys
// anew; each that then reads the same write is woken by its own.
type Waker[K comparable] struct {
	Queue *workqueue.Queue[K]
	Key   K
}

// Wake implements [ownwrites.Waker].
func (w Waker[K]) Wake(m ownwrites.Missed) {
	cause := workqueue.Cause{Source: m.Resource.String(), Event: "Missed", Object: m.Key.String(), Time: time.Now()}
	w.Queue.AddWithCause(w.Key, cause)
}
