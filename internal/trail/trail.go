// Package trail notes what is written with a context, for those who want to know whether a change that they hear of is their own.
package trail

import (
	"context"
	"slices"
	"sync"
)

// Write is a write that was answered.
type Write struct {
	// Verb is the method of the request, Resource and Object ("namespace/name") are what it was sent to.
	Verb, Resource, Object string
	// Manager is the field manager that the server books it under.
	Manager string
	// Version is the resource version in the answer.
	Version string
}

// kept is how many writes a trail remembers: more than the runs of a key can be behind their events.
const kept = 256

// Trail has the last writes.
//
// Concurrency: all methods may be called from any goroutine.
type Trail struct {
	mu     sync.Mutex
	writes []Write // the oldest first. Invariant: len(writes) <= kept.
}

// Note adds a write.
func (t *Trail) Note(w Write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.writes) == kept {
		t.writes = append(t.writes[:0], t.writes[kept/2:]...)
	}
	t.writes = append(t.writes, w)
}

// Find returns the write that led to that version of an object.
func (t *Trail) Find(object, version string) (Write, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.writes, func(w Write) bool { return w.Version == version && w.Object == object })
	if i < 0 || version == "" {
		return Write{}, false
	}
	return t.writes[i], true
}

type key struct{}

// With returns a context whose writes t is told.
func With(ctx context.Context, t *Trail) context.Context { return context.WithValue(ctx, key{}, t) }

// From returns the trail of a context; nil: nobody wants to know.
func From(ctx context.Context) *Trail {
	t, _ := ctx.Value(key{}).(*Trail)
	return t
}
