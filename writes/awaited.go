package writes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/writes/internal/caches"
)

// Awaited has the records of all servers that a process writes to, while a manager runs until it is idle. In this time,
// an entry of these records is kept until all caches of the factory show it. The zero value is empty.
//
// Concurrency: all methods may be called from any goroutine.
type Awaited struct {
	mu      sync.Mutex
	records map[*Record]struct{}
	// past is the sum of the counts of the records that were removed.
	past uint64
}

// WithAwaited returns a context that carries the writes of a manager that runs until it is idle.
func WithAwaited(ctx context.Context, a *Awaited) context.Context {
	return context.WithValue(ctx, awaitedKey, a)
}

// AwaitedFrom returns the writes that ctx carries; nil if none.
func AwaitedFrom(ctx context.Context) *Awaited {
	a, _ := ctx.Value(awaitedKey).(*Awaited)
	return a
}

// Add adds the later writes of r.
func (a *Awaited) Add(r *Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.records == nil {
		a.records = map[*Record]struct{}{}
	}
	a.records[r] = struct{}{}
	r.awaited.Store(true)
}

// Remove undoes Add.
func (a *Awaited) Remove(r *Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, has := a.records[r]; !has {
		return
	}
	delete(a.records, r)
	r.awaited.Store(false)
	a.past += r.count()
}

func (a *Awaited) all() []*Record {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.records))
}

// Count returns the number of writes begun plus the number ended. It only rises.
func (a *Awaited) Count() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.past
	for r := range a.records {
		n += r.count()
	}
	return n
}

// Moving reports whether a write is under way to a server that can be reached.
func (a *Awaited) Moving() bool {
	return slices.ContainsFunc(a.all(), func(r *Record) bool {
		return r.begun.Load() != r.ended.Load() && !r.peer.Load().unreachable()
	})
}

// Behind reports whether there are writes that the caches do not show. It may send requests. It ignores writes whose
// answer was lost: their writers got an error and try again. It also ignores all writes to a server that cannot be
// reached.
func (a *Awaited) Behind(ctx context.Context) (behind bool) {
	for _, r := range a.all() {
		if r.peer.Load().unreachable() {
			continue
		}
		for _, l := range r.allResources() {
			behind = l.behind(ctx) || behind
		}
	}
	return behind
}

// GiveUp stops waiting for the writes that the caches may never show.
func (a *Awaited) GiveUp(ctx context.Context) {
	for _, r := range a.all() {
		for _, l := range r.allResources() {
			for _, w := range l.giveUp() {
				klog.FromContext(ctx).V(2).Info("Own write has not reached any cache", "resource", w.Resource,
					"object", klog.KRef(w.Key.Namespace, w.Key.Name))
			}
		}
	}
}

func (r *Record) count() uint64 { return r.begun.Load() + r.ended.Load() }

// behind reports whether a cache of the factory does not show a write of the resource.
func (l *Resource) behind(ctx context.Context) (behind bool) {
	for _, w := range l.answeredInDoubt() {
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

// answeredInDoubt returns the writes that were answered, but whose answers did not show their effect.
func (l *Resource) answeredInDoubt() (inDoubt []*Write) {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.inDoubt {
		if o := w.state(); o.inDoubt && o.lost == nil && !w.abandoned {
			inDoubt = append(inDoubt, w)
		}
	}
	return inDoubt
}

// mayBeUnseen reports whether some cache may lack the effect of w. It asks the server about w once, unless the caches
// already show that all objects of a deletion are gone.
func (l *Resource) mayBeUnseen(ctx context.Context, w *Write) bool {
	o := w.state()
	if o.listVersion == "" && !o.silent && !(w.all && l.showAll(o.objects)) {
		err := w.ask(ctx)
		if errors.Is(err, errSilent) {
			w.update(func(o *outcome) { o.silent = true })
		}
		if err != nil {
			return true
		}
		o = w.state()
	}
	if o.silent && !w.all || len(o.objects) > 0 && !l.showAll(o.objects) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	if len(o.objects) > 0 {
		delete(l.inDoubt, w)
	}
	w.abandoned = true // If the objects are not known, only reads still wait for w.
	return false
}

// showAll reports whether the objects of a write are known and all caches show its effect on them.
func (l *Resource) showAll(objects []caches.Written) bool {
	all := l.record.caches()
	return len(objects) > 0 &&
		!slices.ContainsFunc(objects, func(w caches.Written) bool { return !all.Show(w) })
}

// giveUp abandons the writes that the caches may never show.
func (l *Resource) giveUp() (abandoned []caches.Written) {
	all := l.record.caches()
	inDoubt := l.answeredInDoubt()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range inDoubt {
		o := w.state()
		certain := o.listVersion != "" && !o.silent
		if certain && slices.ContainsFunc(o.objects, all.WillShow) {
			continue
		}
		w.abandoned = true
		abandoned = append(abandoned, caches.Written{Resource: l.Name, Key: w.Key()})
	}
	for _, e := range l.order {
		if l.awaitedLocked(e) && !all.WillShow(e.written()) {
			e.abandoned = true
			abandoned = append(abandoned, e.written())
		}
	}
	return abandoned
}
