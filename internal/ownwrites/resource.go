package ownwrites

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/cachecheck"
	"github.com/flyball-dev/flyball/internal/versions"
)

// maxEntries bounds the entries of one resource, and maxUnread those of a resource that nobody reads through the record
// yet. Entries beyond become minimum versions: reads wait for them.
const (
	maxEntries = 10_000
	maxUnread  = 100
)

// sweepEvery is the shortest time between two searches for writes in doubt that nobody asks about.
const sweepEvery = time.Minute

// Cache is a cache whose readers rely on the record.
type Cache interface {
	// Follows reports whether the cache holds objects of the namespace ("" of no namespace, or of all it follows).
	Follows(namespace string) bool
	// Held returns the metadata of the object that the cache holds.
	Held(key ObjectKey) (metav1.Object, bool)
	// Watermark returns the version up to which the cache is complete in the namespace.
	Watermark(namespace string) string
	// History is as History of informer.Informer.
	History(namespace string) int64
	// WentBack reports whether a watermark has fallen since the last call. It is called with a lock held.
	WentBack() bool
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
	entries map[ObjectKey]*Entry
	// order has the entries, oldest first. Invariant: each value of entries occurs once.
	order []*Entry
	// inDoubt has the writes that are under way, and those whose effect is not known.
	inDoubt map[*Write]struct{}
	// swept is when inDoubt was last searched for old writes.
	swept time.Time
	// minimums are the versions of own writes that have no entry, in the server's history of number minimumHistory.
	minimums       versions.Minimums
	minimumHistory int64
	// caches are the caches read through this record. The slice is replaced, never changed.
	caches []Cache
}

func newResource(r *Record, name schema.GroupResource) *Resource {
	return &Resource{Name: name, record: r, entries: map[ObjectKey]*Entry{}, inDoubt: map[*Write]struct{}{}}
}

// Join adds a cache: entries are kept until it has reached them.
func (l *Resource) Join(c Cache) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.caches = append(slices.Clip(l.caches), c)
}

// Leave undoes Join.
func (l *Resource) Leave(c Cache) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.caches = slices.DeleteFunc(slices.Clone(l.caches), func(other Cache) bool { return other == c })
}

// countLocked sets busy. Every method that changes something calls it before it releases mu.
func (l *Resource) countLocked() {
	n := len(l.entries) + len(l.inDoubt)
	if !l.minimums.None() {
		n++
	}
	l.busy.Store(int64(n))
}

// open notes a write before it is sent.
func (l *Resource) open(w *Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.swept) > sweepEvery { // A search costs as much as there are writes in doubt.
		l.forgetOldLocked()
	}
	l.inDoubt[w] = struct{}{}
	l.countLocked()
}

// forgetOldLocked drops the writes in doubt that nobody has asked about for long.
func (l *Resource) forgetOldLocked() {
	l.swept = time.Now()
	for w := range l.inDoubt {
		if o := w.State(); o.InDoubt && time.Since(o.After) > forgetDeletedAfter {
			delete(l.inDoubt, w)
		}
	}
}

// end ends a write. e is its effect; nil means that it has none.
func (l *Resource) end(w *Write, e *Entry) {
	defer close(w.done)
	l.settle(w, e)
}

// settle ends the doubt about a write. e is the state of the object that is known then; nil means that the caches may
// be read as they are.
func (l *Resource) settle(w *Write, e *Entry) {
	if e != nil {
		e.readers.add(w.waker)
	}
	if old := l.enter(w, e); old != nil && old.readers.remove(w.waker) {
		l.record.caches().Unexpect(old.GVK.GroupKind(), &old.expected)
	}
	if e == nil || e.Gone || l.record.peer.Load().Caches == nil {
		return
	}
	e.expected = cachecheck.Expected{
		Namespace: e.Key.Namespace, Name: e.Key.Name, UID: e.uid, ResourceVersion: e.Version, Selected: e.selectedBy,
		Missed: func() { e.readers.miss(Missed{l.Name, e.Key}) },
	}
	l.record.caches().Expect(e.GVK.GroupKind(), &e.expected)
}

// enter puts the effect of w, unless it is nil, into the record. It returns the entry that it superseded.
func (l *Resource) enter(w *Write, e *Entry) (old *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	delete(l.inDoubt, w)
	if e == nil {
		return nil
	}
	e.history = l.record.history()
	l.pruneLocked() // The caches' lists so far are from before e.
	if old = l.entries[e.Key]; old != nil {
		if !e.supersedes(old) {
			return nil
		}
		l.order = slices.DeleteFunc(l.order, func(other *Entry) bool { return other == old })
	}
	l.entries[e.Key] = e
	l.order = append(l.order, e)
	if len(l.caches) == 0 {
		l.pruneLocked()
	}
	return old
}

// pruneLocked drops the oldest entries that every cache has reached, and all entries if the server's history went back.
func (l *Resource) pruneLocked() {
	for _, c := range l.caches {
		if c.WentBack() {
			l.forgetLocked()
		}
	}
	for len(l.order) > 0 {
		e := l.order[0]
		if !l.coveredLocked(e) && len(l.order) <= l.limitLocked() {
			return
		}
		if !e.Gone && (len(l.caches) == 0 || !l.coveredLocked(e)) {
			l.raiseLocked(e)
		}
		delete(l.entries, e.Key)
		l.order[0] = nil
		l.order = l.order[1:]
	}
	l.order = nil
}

// raiseLocked makes the version of e a minimum. Minimums of an earlier history of the server have no meaning any more.
func (l *Resource) raiseLocked(e *Entry) {
	if e.history != l.minimumHistory {
		l.minimums, l.minimumHistory = versions.Minimums{}, e.history
	}
	l.minimums.Raise(e.Key.Namespace, e.Version)
}

// limitLocked returns how many entries may be kept.
func (l *Resource) limitLocked() int {
	if len(l.caches) == 0 && !l.order[0].Gone && !l.record.awaited.Load() {
		return maxUnread
	}
	return maxEntries
}

// coveredLocked reports whether every cache has reached e. While nobody reads through the record, the factory's caches
// count instead, and deletions are kept for the first reader.
func (l *Resource) coveredLocked(e *Entry) bool {
	if len(l.caches) == 0 {
		return !e.Gone && l.reflectedLocked(e)
	}
	if l.awaitedLocked(e) {
		return false
	}
	return !slices.ContainsFunc(l.caches, func(c Cache) bool { return !e.coveredBy(c) })
}

// awaitedLocked reports whether somebody waits for e; see [Record.SetAwaited].
func (l *Resource) awaitedLocked(e *Entry) bool {
	return !e.abandoned && l.record.awaited.Load() && !l.reflectedLocked(e)
}

// reflectedLocked reports whether all caches of the factory show e.
func (l *Resource) reflectedLocked(e *Entry) bool {
	return l.record.caches().Reflects(e.written(l.Name))
}

// Page is the part of the record that concerns a read.
type Page struct {
	Entries []*Entry
	InDoubt []*Write
	// Minimum is the version that the cache has to reach; "" if none.
	Minimum string
}

// Look returns the part of the record that concerns a read of c, which follows the namespaces (nil means all). A key
// without a name means a list of its namespace ("" means all).
func (l *Resource) Look(c Cache, namespaces []string, key ObjectKey) (p Page) {
	if l.busy.Load() == 0 {
		return p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	l.pruneLocked()
	if c.History(key.Namespace) <= l.minimumHistory {
		p.Minimum = l.minimums.Below(key.Namespace, namespaces)
	}
	if key.Name == "" {
		p.Entries = l.uncoveredLocked(c, key.Namespace)
	} else if e := l.entries[key]; e != nil && !e.coveredBy(c) {
		p.Entries = []*Entry{e}
	}
	l.settleLocked()
	for w := range l.inDoubt {
		if w.mayChange(key) {
			p.InDoubt = append(p.InDoubt, w)
		}
	}
	return p
}

// settleLocked drops the writes in doubt whose effect every cache shows.
func (l *Resource) settleLocked() {
	for w := range l.inDoubt {
		if w.settled(l.caches) {
			delete(l.inDoubt, w)
		}
	}
}

// uncoveredLocked returns the entries of a namespace ("" means all) that c has not reached. Their order is fixed, so
// that two looks at the same record compare equal.
func (l *Resource) uncoveredLocked(c Cache, namespace string) (uncovered []*Entry) {
	of, mark := "", "" // The last entry's namespace, most often this one's too, and its watermark.
	for i, e := range l.order {
		if namespace != "" && namespace != e.Key.Namespace {
			continue
		}
		if i == 0 || mark == "" || of != e.Key.Namespace {
			of, mark = e.Key.Namespace, c.Watermark(e.Key.Namespace)
		}
		if !e.coveredAt(c, mark) {
			uncovered = append(uncovered, e)
		}
	}
	return uncovered
}

// forgetLocked drops the entries after the server's history went back. The caches have a list of the new history. It
// also shows the effect of the writes in doubt that waited for a list of the old one. Writes that are not due yet stay.
func (l *Resource) forgetLocked() {
	clear(l.entries)
	l.order, l.minimums = nil, versions.Minimums{}
	for w := range l.inDoubt {
		if w.State().Until != "" {
			delete(l.inDoubt, w)
		}
	}
}

// EntryOf returns the entry of an object; nil if there is none.
func (l *Resource) EntryOf(key ObjectKey) *Entry {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key]
}

// identities returns the states of an object that this process has seen. The last comes from a cache, if one holds it.
func (l *Resource) identities(key ObjectKey) (known []Identity) {
	if e := l.EntryOf(key); e != nil {
		known = append(known, Identity{e.uid, e.Version})
	}
	l.mu.Lock()
	caches := l.caches
	l.mu.Unlock()
	for _, c := range caches {
		if obj, found := c.Held(key); found {
			return append(known, Identity{obj.GetUID(), obj.GetResourceVersion()})
		}
	}
	return known
}

// Pending is a write that some cache has not reached.
type Pending struct {
	Key ObjectKey
	// Wanted is the version to wait for, and Seen the cache's. Both are empty for a write in doubt.
	Wanted, Seen string
	// Lost is why the effect is unknown; nil if the answer was not lost.
	Lost error
}

// PendingOf returns a write of owner that some cache has not reached; nil if there is none. If doubts is set, it may
// also return a write in doubt.
func (l *Resource) PendingOf(owner any, doubts bool) *Pending {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	l.pruneLocked()
	l.settleLocked()
	for w := range l.inDoubt {
		if doubts && w.Owner == owner {
			return &Pending{Key: w.Key(), Lost: w.State().Lost}
		}
	}
	for _, e := range l.order {
		if e.owner != owner {
			continue
		}
		if i := slices.IndexFunc(l.caches, func(c Cache) bool { return !e.coveredBy(c) }); i >= 0 {
			return &Pending{Key: e.Key, Wanted: e.Version, Seen: l.caches[i].Watermark(e.Key.Namespace)}
		}
	}
	return nil
}

// DueOf returns a write in doubt of owner that the server can be asked about now; nil if there is none.
func (l *Resource) DueOf(owner any) *Write {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.inDoubt {
		if o := w.State(); w.Owner == owner && o.InDoubt && o.Until == "" && !o.After.After(time.Now()) {
			return w
		}
	}
	return nil
}

// Sizes returns how many own writes some cache has not reached, and how many are in doubt.
func (l *Resource) Sizes() (unseen, inDoubt int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	l.pruneLocked()
	l.forgetOldLocked()
	l.settleLocked()
	return len(l.entries), len(l.inDoubt)
}
