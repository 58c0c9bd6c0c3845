package reconcile

import (
	"fmt"
	"slices"
)

// mostLeftInLog is how many keys the line of the log names that tells of the stop.
const mostLeftInLog = 10

// Left are the keys that are queued or in flight, sorted, at most limit of them: after Run has returned, those that were left to
// the next process. Keys that wait for their time are in [Controller.Work].
func (c *Controller[K]) Left(limit int) []string {
	view := c.queue.View(limit)
	keys := make([]string, 0, len(view.Ready)+len(view.Processing))
	for _, v := range slices.Concat(view.Processing, view.Ready) {
		keys = append(keys, fmt.Sprint(v.Key))
	}
	slices.Sort(keys)
	keys = slices.Compact(keys) // one that is in flight may be queued again
	return keys[:min(limit, len(keys))]
}
