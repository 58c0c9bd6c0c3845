package expectations

import "time"

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
	return e.missing <= 0 || cacheVersion >= e.wrote
}
