// Package awaited has the writes of a process to all its servers, for which a manager that runs until it is idle waits.
package awaited

import (
	"context"
	"slices"
	"sync"

	"github.com/flyball-dev/flyball/internal/cachecheck"
	"github.com/flyball-dev/flyball/internal/ownwrites"
)

// Writes are the records of all servers that a process writes to. The zero value is empty.
//
// Concurrency: all methods may be called from any goroutine.
type Writes struct {
	mu      sync.Mutex
	records map[*ownwrites.Record]struct{}
	// past is the count of records that were removed.
	past uint64
}

// Add adds r. It keeps later writes until all caches of its factory show them.
func (w *Writes) Add(r *ownwrites.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.records == nil {
		w.records = map[*ownwrites.Record]struct{}{}
	}
	w.records[r] = struct{}{}
	r.SetAwaited(true)
}

// Remove undoes Add.
func (w *Writes) Remove(r *ownwrites.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, has := w.records[r]; !has {
		return
	}
	delete(w.records, r)
	r.SetAwaited(false)
	w.past += r.Count()
}

func (w *Writes) all() []*ownwrites.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*ownwrites.Record, 0, len(w.records))
	for r := range w.records {
		all = append(all, r)
	}
	return all
}

// Moving reports whether a write is under way.
func (w *Writes) Moving() bool { return slices.ContainsFunc(w.all(), (*ownwrites.Record).Moving) }

// Count returns the number of writes begun plus the number ended. It only rises.
func (w *Writes) Count() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.past
	for r := range w.records {
		n += r.Count()
	}
	return n
}

// Behind reports whether there are writes that the caches do not show. It may send requests.
func (w *Writes) Behind(ctx context.Context) (behind bool) {
	for _, r := range w.all() {
		behind = r.Behind(ctx) || behind
	}
	return behind
}

// GiveUp stops waiting for the writes that the caches may never show, and returns them.
func (w *Writes) GiveUp() (abandoned []cachecheck.Written) {
	for _, r := range w.all() {
		abandoned = append(abandoned, r.GiveUp()...)
	}
	return abandoned
}

type writesKey struct{}

// With returns a context that carries the writes of a manager that runs until it is idle.
func With(ctx context.Context, w *Writes) context.Context {
	return context.WithValue(ctx, writesKey{}, w)
}

// From returns the writes that ctx carries; nil if none.
func From(ctx context.Context) *Writes {
	w, _ := ctx.Value(writesKey{}).(*Writes)
	return w
}
