package writes

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/versions"
)

// maxEntries bounds the entries of one resource, and maxUnread those of a resource that no cache has joined yet. The
// oldest entries become minimum versions: reads wait for them.
const (
	maxEntries = 10_000
	maxUnread  = 100
)

// sweepEvery is the shortest time between two searches for writes in doubt that no read has asked about.
const sweepEvery = time.Minute

// Cache is a cache whose readers rely on the record.
type Cache interface {
	// Namespaces returns the namespaces whose objects the cache holds; nil means all.
	Namespaces() []string
	// Get returns the object that the cache holds.
	Get(key types.NamespacedName) (informer.Object, bool)
	// Watermark returns the version up to which the cache is complete in the namespace.
	Watermark(namespace string) string
	// History is that of [informer.Informer].
	History(namespace string) int64
	// WaitForVersion waits until the watermark of the namespace has reached version.
	WaitForVersion(ctx context.Context, namespace, version string) error
}

// Resource has the own writes of one resource.
//
// Concurrency: no user code runs under mu, and no request is sent.
type Resource struct {
	Name   schema.GroupResource
	record *Record
	// busy is the number of entries, writes in doubt and minimums that a read has to look at. Reads of an idle resource
	// do not take the lock.
	busy atomic.Int64

	mu sync.Mutex
	// entries has the newest own write of each object, until every cache has reached it.
	entries map[types.NamespacedName]*Entry
	// order has the entries, oldest first. Invariant: each value of entries occurs once.
	order []*Entry
	// inDoubt has the writes that are under way, and those whose effect is not known.
	inDoubt map[*Write]struct{}
	// swept is when inDoubt was last searched for old writes.
	swept time.Time
	// minimums are the minimum versions. They belong to the server's history that has the number minimumHistory.
	minimums       versions.Minimums
	minimumHistory int64
	// joined are the caches that are read with this record. The slice is replaced, never changed.
	joined []*joinedCache
}

// joinedCache is a cache, and the watermark of each of its namespaces as it was last seen. If the cache holds all
// namespaces, it has one watermark, under "". The Resource's mu guards the watermarks.
type joinedCache struct {
	Cache
	watermarks map[string]string
}

// wentBackLocked reports whether a watermark has fallen since the last call.
func (c *joinedCache) wentBackLocked() (back bool) {
	namespaces := c.Namespaces()
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		mark := c.Watermark(namespace)
		back = back || versions.Earlier(mark, c.watermarks[namespace])
		c.watermarks[namespace] = mark
	}
	return back
}

// Join adds a cache. From now on an entry is kept until this cache, too, has reached it.
func (l *Resource) Join(c Cache) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joined = append(slices.Clip(l.joined), &joinedCache{c, map[string]string{}})
}

// Leave undoes Join. Release the informer of the cache first: then the record keeps nothing of it in memory.
func (l *Resource) Leave(c Cache) {
	l.mu.Lock()
	l.joined = slices.DeleteFunc(slices.Clone(l.joined), func(other *joinedCache) bool { return other.Cache == c })
	for _, e := range l.order {
		e.dropView(c)
	}
	l.mu.Unlock()
	l.record.prune()
}

// Entry returns the entry of an object; nil if there is none.
func (l *Resource) Entry(key types.NamespacedName) *Entry {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key]
}

// Unreached returns the own writes that a read of c does not find in the cache yet. A key without a name stands for a
// list of its namespace ("" means all). minimum is the version that the cache still has to reach; "" if none.
func (l *Resource) Unreached(c Cache, key types.NamespacedName) (entries []*Entry, inDoubt []*Write, minimum string) {
	if l.busy.Load() == 0 {
		return nil, nil, ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	l.pruneLocked()
	if c.History(key.Namespace) <= l.minimumHistory {
		minimum = l.minimums.Below(key.Namespace, c.Namespaces())
		if versions.Reached(c.Watermark(key.Namespace), minimum) {
			minimum = ""
		}
	}
	if key.Name == "" {
		entries = l.unreachedLocked(c, key.Namespace)
	} else if e := l.entries[key]; e != nil && !e.reachedBy(c) {
		entries = []*Entry{e}
	}
	l.dropSettledLocked()
	for w := range l.inDoubt {
		if w.mayChange(key) && !w.shownIn(c) { // Another cache may not show it yet.
			inDoubt = append(inDoubt, w)
		}
	}
	return entries, inDoubt, minimum
}

// unreachedLocked returns the entries of a namespace ("" means all) that c has not reached. Their order is fixed, so
// that the results of two calls can be compared.
func (l *Resource) unreachedLocked(c Cache, namespace string) (unreached []*Entry) {
	of, mark := "", "" // The last entry's namespace and its watermark. The next entry's is often the same.
	for i, e := range l.order {
		if namespace != "" && namespace != e.Key.Namespace {
			continue
		}
		if i == 0 || mark == "" || of != e.Key.Namespace {
			of, mark = e.Key.Namespace, c.Watermark(e.Key.Namespace)
		}
		if !e.reachedAt(c, mark) {
			unreached = append(unreached, e)
		}
	}
	return unreached
}

// begin records a write before it is sent.
func (l *Resource) begin(w *Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.swept) > sweepEvery { // A search costs as much as there are writes in doubt.
		l.forgetOldLocked()
	}
	l.inDoubt[w] = struct{}{}
	l.countLocked()
}

// end ends a write whose effect is known. e is its effect; nil means that it has none.
func (l *Resource) end(w *Write, e *Entry) {
	defer close(w.done)
	l.settle(w, e)
}

// settle ends the doubt about a write. e is the state of the object, which is now known; nil means that the caches can
// be read as they are.
func (l *Resource) settle(w *Write, e *Entry) {
	if e != nil {
		e.readers.add(w.waker)
	}
	if old := l.enter(w, e); old != nil && old.readers.remove(w.waker) {
		l.record.caches().Unexpect(&old.expected)
	}
	if e != nil {
		e.expect()
	}
}

// enter puts e, the effect of w, into the record unless it is nil. It returns the entry that e supersedes.
func (l *Resource) enter(w *Write, e *Entry) (old *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	delete(l.inDoubt, w)
	if e == nil {
		return nil
	}
	e.history = l.record.caches().History()
	l.pruneLocked() // If a watermark went back, drop the entries now: e is newer.
	if old = l.entries[e.Key]; old != nil {
		if !e.supersedes(old) {
			return nil
		}
		l.order = slices.DeleteFunc(l.order, func(other *Entry) bool { return other == old })
	}
	l.entries[e.Key] = e
	l.order = append(l.order, e)
	if len(l.joined) == 0 {
		l.pruneLocked()
	}
	return old
}

// countLocked sets busy. Every method that changes something calls it before it releases mu.
func (l *Resource) countLocked() {
	n := len(l.entries) + len(l.inDoubt)
	if !l.minimums.None() {
		n++
	}
	l.busy.Store(int64(n))
}

// pruneLocked drops the oldest entries, as far as every cache has reached them or there are too many. If the server's
// history went back, it drops all entries.
func (l *Resource) pruneLocked() {
	for _, c := range l.joined {
		if c.wentBackLocked() {
			l.forgetLocked()
		}
	}
	for len(l.order) > 0 {
		e := l.order[0]
		if !l.reachedLocked(e) && len(l.order) <= l.limitLocked() {
			return
		}
		if !e.Gone && (len(l.joined) == 0 || !l.reachedLocked(e)) {
			l.raiseLocked(e)
		}
		delete(l.entries, e.Key)
		l.order[0] = nil
		l.order = l.order[1:]
	}
	l.order = nil
}

// raiseLocked makes the version of e a minimum version. It drops the minimum versions of another history, which have no
// meaning any more.
func (l *Resource) raiseLocked(e *Entry) {
	if e.history != l.minimumHistory {
		l.minimums, l.minimumHistory = versions.Minimums{}, e.history
	}
	l.minimums.Raise(e.Key.Namespace, e.Version)
}

// limitLocked returns how many entries may be kept.
func (l *Resource) limitLocked() int {
	if len(l.joined) == 0 && !l.order[0].Gone && !l.record.awaited.Load() {
		return maxUnread
	}
	return maxEntries
}

// reachedLocked reports whether every cache has reached e. While no cache has joined, the factory's caches count
// instead, and deletions are kept for the first reader.
func (l *Resource) reachedLocked(e *Entry) bool {
	if len(l.joined) == 0 {
		return !e.Gone && l.record.caches().Show(e.written())
	}
	return !l.awaitedLocked(e) && !slices.ContainsFunc(l.joined, func(c *joinedCache) bool { return !e.reachedBy(c) })
}

// awaitedLocked reports whether RunUntilIdle waits for e: not all caches of the factory show it.
func (l *Resource) awaitedLocked(e *Entry) bool {
	return !e.abandoned && l.record.awaited.Load() && !l.record.caches().Show(e.written())
}

// dropSettledLocked drops the writes in doubt whose effect every cache shows.
func (l *Resource) dropSettledLocked() {
	maps.DeleteFunc(l.inDoubt, func(w *Write, _ struct{}) bool { return w.settledIn(l.joined) })
}

// forgetLocked drops the entries after the server's history went back. The caches now have a list of the new history.
// That list also shows the effect of the writes in doubt that waited for a list of the old history, so it drops these
// writes as well. Writes in doubt that do not wait for a list stay.
func (l *Resource) forgetLocked() {
	clear(l.entries)
	l.order, l.minimums = nil, versions.Minimums{}
	maps.DeleteFunc(l.inDoubt, func(w *Write, _ struct{}) bool { return w.state().listVersion != "" })
}

// forgetOldLocked drops the writes in doubt that no read has asked about for long.
func (l *Resource) forgetOldLocked() {
	l.swept = time.Now()
	maps.DeleteFunc(l.inDoubt, func(w *Write, _ struct{}) bool {
		o := w.state()
		return o.inDoubt && time.Since(o.askAfter) > forgetDeletedAfter
	})
}

// identities returns the states of an object that this process has seen. The last one comes from a cache, if a cache
// holds the object.
func (l *Resource) identities(key types.NamespacedName) (known []identity) {
	if e := l.Entry(key); e != nil {
		known = append(known, identity{e.uid, e.Version})
	}
	l.mu.Lock()
	joined := l.joined
	l.mu.Unlock()
	for _, c := range joined {
		if obj, found := c.Get(key); found {
			return append(known, identityOf(obj))
		}
	}
	return known
}

// sizes returns the number of own writes that some cache has not reached, and the number of writes in doubt.
func (l *Resource) sizes() (unseen, inDoubt int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	l.pruneLocked()
	l.forgetOldLocked()
	l.dropSettledLocked()
	return len(l.entries), len(l.inDoubt)
}
