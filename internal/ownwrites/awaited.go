package ownwrites

import (
	"context"
	"errors"
	"slices"

	"github.com/flyball-dev/flyball/internal/cachecheck"
)

// SetAwaited sets whether somebody waits until the caches show later writes. If so, entries are kept until all caches
// of the factory show them.
func (r *Record) SetAwaited(awaited bool) { r.awaited.Store(awaited) }

// Count returns the number of writes begun plus the number ended. It only rises.
func (r *Record) Count() uint64 { return r.begun.Load() + r.ended.Load() }

// Moving reports whether a write is under way to a server that can be reached.
func (r *Record) Moving() bool { return r.begun.Load() != r.ended.Load() && !r.away() }

// Behind reports whether there are writes that the caches do not show. It may send requests. It ignores writes whose
// answer was lost: their writers got an error and try again. It also ignores all writes to a server that cannot be
// reached.
func (r *Record) Behind(ctx context.Context) (behind bool) {
	if r.away() {
		return false
	}
	for _, l := range r.All() {
		behind = l.behind(ctx) || behind
	}
	return behind
}

// GiveUp stops waiting for the writes that the caches may never show, and returns them.
func (r *Record) GiveUp() (abandoned []cachecheck.Written) {
	for _, l := range r.All() {
		abandoned = append(abandoned, l.giveUp()...)
	}
	return abandoned
}

func (r *Record) away() bool {
	away := r.peer.Load().Away
	return away != nil && away()
}

// behind reports whether a cache of the factory does not show a write of the resource.
func (l *Resource) behind(ctx context.Context) (behind bool) {
	for _, w := range l.uncertain() {
		if l.mayBeUnseen(ctx, w) {
			behind = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	l.pruneLocked()
	return behind || slices.ContainsFunc(l.order, l.awaitedLocked)
}

// uncertain returns the writes whose answers did not tell their effect.
func (l *Resource) uncertain() (uncertain []*Write) {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.inDoubt {
		if o := w.State(); o.InDoubt && o.Lost == nil && !w.abandoned {
			uncertain = append(uncertain, w)
		}
	}
	return uncertain
}

// mayBeUnseen reports whether the caches may not show the effect of w. It asks the server, once. It need not ask if the
// caches show that all objects of a deletion are gone.
func (l *Resource) mayBeUnseen(ctx context.Context, w *Write) bool {
	o := w.State()
	if o.Until == "" && !o.silent && !(w.all && l.reflected(o)) {
		err := l.Resolve(ctx, w)
		if errors.Is(err, errSilent) {
			w.markSilent()
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

// markSilent notes that the server does not tell the effect of w.
func (w *Write) markSilent() {
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
	uncertain := l.uncertain()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range uncertain {
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
