package client

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
)

// maxEntries bounds the books of one resource. What is beyond is not laid over any more, but waited for.
const maxEntries = 10_000

// ledger has the own writes of one resource.
//
// Concurrency: no user's code runs under mu, and no request.
type ledger struct {
	resource schema.GroupResource
	// history returns the number of the server's history.
	history func() int64
	// informers are told what they are to show; nil when there are none.
	informers *informer.Factory
	// busy is the number of things below that a read has to look at. Reads of an idle ledger do not take the lock.
	busy atomic.Int64

	mu sync.Mutex
	// entries has the newest own write of each object that some cache has not seen.
	entries map[ObjectKey]*entry
	// order has the entries, oldest first. Invariant: it has those of entries, each once.
	order []*entry
	// unsettled are the writes of which nobody knows what came of them: under way, or with their answer lost.
	unsettled map[*write]struct{}
	// floors are of own writes that have no entry, in the server's history of number floored.
	floors  floors
	floored int64
	// caches are those that read with these books.
	caches []*cache
}

func (l *ledger) join(c *cache) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.caches = append(l.caches, c)
}

// countLocked sets busy; it is called before mu is released by who changed something.
func (l *ledger) countLocked() {
	n := len(l.entries) + len(l.unsettled)
	if !l.floors.none() {
		n++
	}
	l.busy.Store(int64(n))
}

// open puts a write into the books before it is sent.
func (l *ledger) open(w *write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetOldLocked()
	l.unsettled[w] = struct{}{}
	l.countLocked()
}

// forgetOldLocked drops the writes of which nobody knows what came of them, nor reads what they could have changed.
func (l *ledger) forgetOldLocked() {
	for w := range l.unsettled {
		if o := w.state(); o.vague && time.Since(o.after) > forgetDeletedAfter {
			delete(l.unsettled, w)
		}
	}
}

// close ends a write: with e as its effect, or with none if e is nil.
func (l *ledger) close(w *write, e *entry) {
	defer close(w.done)
	if e != nil {
		e.knowers.add(w.waker)
	}
	if old := l.enter(w, e); old != nil {
		l.outdate(w, old)
	}
	if e != nil && !e.gone {
		l.expect(w, e)
	}
}

// enter puts the effect of w into the books, if that is not nil. It returns the entry that it superseded.
func (l *ledger) enter(w *write, e *entry) (old *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	delete(l.unsettled, w)
	if e == nil {
		return nil
	}
	e.history = l.history()
	if len(l.caches) == 0 && !e.gone {
		l.raiseLocked(e)
		return nil
	}
	l.pruneLocked() // What is known by now is from before e.
	if old = l.entries[e.key]; old != nil {
		if !e.supersedes(old) {
			return nil
		}
		l.order = slices.DeleteFunc(l.order, func(other *entry) bool { return other == old })
	}
	l.entries[e.key] = e
	l.order = append(l.order, e)
	return old
}

// pruneLocked drops the oldest entries as far as every cache has seen them; and all, when the server's history went back.
func (l *ledger) pruneLocked() {
	for _, c := range l.caches {
		if c.wentBack() {
			l.forgetLocked()
		}
	}
	for len(l.order) > 0 {
		e := l.order[0]
		if !l.coveredLocked(e) {
			if len(l.order) <= maxEntries {
				return
			}
			if !e.gone {
				l.raiseLocked(e)
			}
		}
		delete(l.entries, e.key)
		l.order[0] = nil
		l.order = l.order[1:]
	}
	l.order = nil
}

// raiseLocked puts e among the floors. Those of an earlier history of the server tell nothing any more.
func (l *ledger) raiseLocked(e *entry) {
	if e.history != l.floored {
		l.floors, l.floored = floors{}, e.history
	}
	l.floors.raise(e.key.Namespace, e.version)
}

// coveredLocked says whether every cache has seen what e tells. Without any cache, what is gone waits for the first.
func (l *ledger) coveredLocked(e *entry) bool {
	if len(l.caches) == 0 {
		return false
	}
	return !slices.ContainsFunc(l.caches, func(c *cache) bool { return !e.coveredBy(c) })
}

// page is what a read has to know of the books.
type page struct {
	entries   []*entry
	unsettled []*write
	// floor is what the cache has to have reached, "" nothing.
	floor string
}

// look returns what concerns a read of c.
func (l *ledger) look(c *cache, q *query) page {
	if l.busy.Load() == 0 {
		return page{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	l.pruneLocked()
	p := page{}
	if c.store.history(q.key.Namespace) <= l.floored {
		p.floor = l.floors.below(q.key.Namespace, c.namespaces)
	}
	if !q.lists() {
		if e := l.entries[q.key]; e != nil && !e.coveredBy(c) {
			p.entries = []*entry{e}
		}
	} else {
		p.entries = l.uncoveredLocked(c, q.key.Namespace)
	}
	for w := range l.unsettled {
		if w.settled(l.caches) {
			delete(l.unsettled, w)
			continue
		}
		p.unsettled = append(p.unsettled, w)
	}
	return p
}

// uncoveredLocked returns the entries of a namespace ("" is all) that c has not seen: in order, so that two looks at the same
// books compare equal.
func (l *ledger) uncoveredLocked(c *cache, namespace string) (uncovered []*entry) {
	of, mark := "", "" // The watermark of the namespace of the entry before: most often it is the same.
	for i, e := range l.order {
		if namespace != "" && namespace != e.key.Namespace {
			continue
		}
		if i == 0 || mark == "" || of != e.key.Namespace {
			of, mark = e.key.Namespace, c.store.watermark(e.key.Namespace)
		}
		if !e.coveredAt(c, mark) {
			uncovered = append(uncovered, e)
		}
	}
	return uncovered
}

// forgetLocked closes the books after the server's history went back. The cache has a list of the new one, which shows
// what became of the writes that a list of the old one was waited for. Those whose time to be asked about has not come stay.
func (l *ledger) forgetLocked() {
	clear(l.entries)
	l.order, l.floors = nil, floors{}
	for w := range l.unsettled {
		if w.state().until != "" {
			delete(l.unsettled, w)
		}
	}
}

// entryOf returns what the books say about an object; nil if nothing.
func (l *ledger) entryOf(key ObjectKey) *entry {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key]
}

// resolve asks the server for a list, which shows the effects of all writes whose time has come by now.
func (l *ledger) resolve(ctx context.Context, server *live, p place) error {
	start, history := time.Now(), l.history()
	version, err := server.version(ctx, p)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.unsettled {
		w.shownBy(version, history, start)
	}
	return nil
}

// held returns the object with that key from some cache that has it; nil if none has.
func (l *ledger) held(key ObjectKey) Object {
	l.mu.Lock()
	caches := l.caches
	l.mu.Unlock()
	for _, c := range caches {
		if obj, found := c.store.get(key); found {
			return obj
		}
	}
	return nil
}

// pendingOf tells of a write of owner that some cache has not seen; nil if there is none.
func (l *ledger) pendingOf(owner any) *StaleError {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	l.pruneLocked()
	for w := range l.unsettled {
		if stands(owner, w.owner) && !w.settled(l.caches) {
			return &StaleError{Resource: l.resource.String(), Key: w.key, Cause: w.state().lost}
		}
	}
	for _, e := range l.order {
		if !stands(owner, e.owner) {
			continue
		}
		if i := slices.IndexFunc(l.caches, func(c *cache) bool { return !e.coveredBy(c) }); i >= 0 {
			return &StaleError{Resource: l.resource.String(), Key: e.key, Wanted: e.version, Seen: l.caches[i].store.watermark(e.key.Namespace)}
		}
	}
	return nil
}

// due returns a write of owner whose effect the server can tell now; nil if there is none.
func (l *ledger) due(owner any) *write {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.unsettled {
		if o := w.state(); stands(owner, w.owner) && o.vague && o.until == "" && !o.after.After(time.Now()) {
			return w
		}
	}
	return nil
}
