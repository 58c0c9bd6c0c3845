// Package expectations is task 09b: a controller that waits for the events of its writes, but not long enough.
//
// A controller creates pods, and records how many events must arrive before it may count its pods again. Some events
// never arrive: no watch shows a pod that is created and deleted while the watch is interrupted. So the controller
// stops waiting after five minutes.
//
// One day the watch is six minutes behind. The controller creates three pods, waits for five minutes, and creates three
// more. This is https://github.com/kubernetes/kubernetes/issues/129795, in pkg/controller/controller_utils.go of
// kube-controller-manager.
//
// A longer timeout would only postpone the problem. Find a better reason than the clock to stop waiting. The cache
// knows its progress: see cacheVersion.
package expectations

import "time"

// timeout is how long the controller waits for events.
const timeout = 5 * time.Minute

// Expectations counts, for one owner, the creates whose events have not arrived.
type Expectations struct {
	missing int
	since   time.Time
	// wrote is the highest resource version in the answers to creates.
	wrote int
}

// Expect is called before a number of creates.
func (e *Expectations) Expect(creates int) {
	e.missing, e.since = creates, time.Now()
}

// Created is called with the resource version in the answer to each create.
func (e *Expectations) Created(version int) {
	e.wrote = max(e.wrote, version)
}

// Seen is called for the event of each new pod.
func (e *Expectations) Seen() { e.missing-- }

// Satisfied reports whether the owner may be reconciled. It is called when all creates have been answered. cacheVersion
// is the version up to which the cache has every change on the server.
func (e *Expectations) Satisfied(cacheVersion int) bool {
	return e.missing <= 0 || time.Since(e.since) > timeout
}
