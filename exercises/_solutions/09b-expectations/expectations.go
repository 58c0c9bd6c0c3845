package expectations

import "time"

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
	return e.missing <= 0 || cacheVersion >= e.wrote
}
