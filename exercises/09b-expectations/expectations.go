// Package expectations is task 09b: a controller that waits for the events of its writes, and stops too early.
//
// A controller creates pods, and notes how many events must come back before it may count its pods again. An event can
// fail to come: a pod that was created and deleted while the watch was cut is never seen. So there is a deadline of
// five minutes.
//
// One day the watch is six minutes late. The controller creates three pods, waits for five minutes, and creates three
// more. This is https://github.com/kubernetes/kubernetes/issues/129795, in pkg/controller/controller_utils.go of
// kube-controller-manager.
//
// A longer deadline would only move the day. Find a better reason to stop waiting than the clock. The cache can tell
// how far it is: see cacheVersion.
package expectations

import "time"

// timeout is how long events are waited for.
const timeout = 5 * time.Minute

// Expectations counts, for one owner, the creates whose events have not come.
type Expectations struct {
	missing int
	since   time.Time
	// wrote is the highest resource version that a create was answered with.
	wrote int
}

// Expect is called before a number of creates.
func (e *Expectations) Expect(creates int) {
	e.missing, e.since = creates, time.Now()
}

// Created is called with the resource version of each create's answer.
func (e *Expectations) Created(version int) {
	e.wrote = max(e.wrote, version)
}

// Seen is called for each event that tells of a new pod.
func (e *Expectations) Seen() { e.missing-- }

// Satisfied reports whether the owner may be reconciled. cacheVersion is how far the cache is: it has everything that
// happened on the server up to this version.
func (e *Expectations) Satisfied(cacheVersion int) bool {
	return e.missing <= 0 || time.Since(e.since) > timeout
}
