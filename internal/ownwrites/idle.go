package ownwrites

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/flyball-dev/flyball/internal/cachecheck"
)

// Set is the records of all servers that a process writes to. Its caller waits until all caches show the writes. The
// zero value is empty.
//
// Concurrency: all methods may be called from any goroutine.
type Set struct {
	mu      sync.Mutex
	records map[*Record]struct{}
	// past is the count of records that were removed.
	past uint64
}

// Add makes r keep later writes until all caches of its factory show them.
func (s *Set) Add(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records == nil {
		s.records = map[*Record]struct{}{}
	}
	s.records[r] = struct{}{}
	r.awaited.Store(true)
}

// Remove undoes Add.
func (s *Set) Remove(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.records[r]; !has {
		return
	}
	delete(s.records, r)
	r.awaited.Store(false)
	s.past += r.begun.Load() + r.ended.Load()
}

func (s *Set) all() []*Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Record, 0, len(s.records))
	for r := range s.records {
		all = append(all, r)
	}
	return all
}

// Moving reports whether a write is under way.
func (s *Set) Moving() bool {
	return slices.ContainsFunc(s.all(), func(r *Record) bool { return r.begun.Load() != r.ended.Load() && !r.away() })
}

// Count returns the number of writes begun plus the number ended. It only rises.
func (s *Set) Count() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.past
	for r := range s.records {
		n += r.begun.Load() + r.ended.Load()
	}
	return n
}

// Behind reports whether there are writes that the caches do not show. It may send requests. It ignores writes whose
// answer was lost: their writers got an error and try again.
func (s *Set) Behind(ctx context.Context) (behind bool) {
	for _, r := range s.all() {
		if r.away() {
			continue
		}
		for _, l := range r.All() {
			behind = l.behind(ctx) || behind
		}
	}
	return behind
}

// GiveUp stops waiting for the writes that the caches may never show, and returns them.
func (s *Set) GiveUp() (abandoned []cachecheck.Written) {
	for _, r := range s.all() {
		for _, l := range r.All() {
			abandoned = append(abandoned, l.giveUp()...)
		}
	}
	return abandoned
}

func (r *Record) away() bool {
	away := r.peer.Load().Away
	return away != nil && away()
}

// behind reports whether a cache of the factory does not show a write of the resource.
func (l *Resource) behind(ctx context.Context) (behind bool) {
	for _, w := range l.untold() {
		if l.unknown(ctx, w) {
			behind = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	l.pruneLocked()
	return behind || slices.ContainsFunc(l.order, l.awaitedLocked)
}

// untold returns the writes whose answers did not tell their effect.
func (l *Resource) untold() (untold []*Write) {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.inDoubt {
		if o := w.State(); o.InDoubt && o.Lost == nil && !w.abandoned {
			untold = append(untold, w)
		}
	}
	return untold
}

// unknown reports whether the caches may not show the effect of w. It asks the server, once. It need not ask if the
// caches show that all objects of a deletion are gone.
func (l *Resource) unknown(ctx context.Context, w *Write) bool {
	o := w.State()
	if o.Until == "" && !o.silent && !(w.all && l.reflected(o)) {
		err := l.Resolve(ctx, w)
		if errors.Is(err, errSilent) {
			w.mute()
		}
		if err != nil {
			return true
		}
		o = w.State()
	}
	if o.silent && !w.all || len(o.objects) > 0 && !l.reflected(o) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	if len(o.objects) > 0 {
		delete(l.inDoubt, w)
	}
	w.abandoned = true // Without a list of objects only reads have to wait.
	return false
}

// mute notes that the server does not tell the effect of w.
func (w *Write) mute() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome.silent = true
}

// reflected reports whether the objects of a write are known and all caches show its effect on them.
func (l *Resource) reflected(o Outcome) bool {
	caches := l.record.caches()
	return len(o.objects) > 0 &&
		!slices.ContainsFunc(o.objects, func(w cachecheck.Written) bool { return !caches.Reflects(w) })
}

// written returns an object as [cachecheck.Caches] look for it.
func (l *Resource) written(key ObjectKey) cachecheck.Written {
	return cachecheck.Written{Resource: l.Name, Namespace: key.Namespace, Name: key.Name}
}

// giveUp abandons the writes that the caches may never show.
func (l *Resource) giveUp() (abandoned []cachecheck.Written) {
	caches := l.record.caches()
	untold := l.untold()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range untold {
		o := w.State()
		certain := o.Until != "" && !o.silent
		if certain && slices.ContainsFunc(o.objects, caches.WillReflect) {
			continue
		}
		w.abandoned = true
		abandoned = append(abandoned, l.written(w.Key()))
	}
	for _, e := range l.order {
		if l.awaitedLocked(e) && !caches.WillReflect(e.written(l.Name)) {
			e.abandoned = true
			abandoned = append(abandoned, e.written(l.Name))
		}
	}
	return abandoned
}

type setKey struct{}

// With returns a context that carries the set of a caller that waits.
func With(ctx context.Context, s *Set) context.Context { return context.WithValue(ctx, setKey{}, s) }

// From returns the set of a caller that waits; nil if nobody does.
func From(ctx context.Context) *Set {
	s, _ := ctx.Value(setKey{}).(*Set)
	return s
}
