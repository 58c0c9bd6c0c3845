// Package text formats the keys of a queue for people.
package text

import (
	"fmt"

	"github.com/flyball-dev/flyball/workqueue"
)

// View returns v with its keys formatted by fmt.Sprint.
func View[K comparable](v workqueue.View[K]) workqueue.View[string] {
	return workqueue.View[string]{Ready: keys(v.Ready), Processing: keys(v.Processing), Delayed: keys(v.Delayed)}
}

func keys[K comparable](of []workqueue.KeyView[K]) []workqueue.KeyView[string] {
	texts := make([]workqueue.KeyView[string], len(of))
	for i, k := range of {
		texts[i] = workqueue.KeyView[string]{
			Key: fmt.Sprint(k.Key), Priority: k.Priority, Attempt: k.Attempt, Time: k.Time, Requeue: k.Requeue,
			Causes: k.Causes, Again: k.Again,
		}
	}
	return texts
}
