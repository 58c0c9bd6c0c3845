// Package trail records the writes made with a context, so that a component that observes a change can find out whether
// it is its own.
package trail

import (
	"context"
	"slices"
	"sync"
)

// Write is a write to which the server has responded.
type Write struct {
	// Verb is the method of the request. Resource and Object ("namespace/name") are its target.
	Verb, Resource, Object string
	// Manager is the field manager under which the server records the write.
	Manager string
	// Version is the resource version in the response.
	Version string
}

// kept is the maximum number of writes that a trail holds. It is more than the writes a key can make before their
// events arrive.
const kept = 256

// Trail holds the last writes.
//
// Concurrency: all methods may be called from any goroutine.
type Trail struct {
	mu     sync.Mutex
	writes []Write // oldest first. Invariant: len(writes) <= kept.
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

// Find returns the write that produced that version of an object.
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

// With returns a context whose writes are recorded in t.
func With(ctx context.Context, t *Trail) context.Context { return context.WithValue(ctx, key{}, t) }

// From returns the trail of a context, or nil if it has none.
func From(ctx context.Context) *Trail {
	t, _ := ctx.Value(key{}).(*Trail)
	return t
}
