package client

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// Gate keeps the reconcile of an owner from beginning before caches show what earlier ones wrote. It is for reconcilers that
// read by informers and write by a clientset, of whose writes the books of a [Cluster] know nothing: they note each write,
// by [GatedCache], and ask before they read. A controller that counts replicas in a cache and creates what is missing would
// create twice otherwise, when it counts again before the cache has caught up.
//
// There are two questions. Reached: have the caches come as far as the newest resource version that was written? If
// not then nothing they say about the owner can be believed. Ready: do they, besides, show every object that was created, and no
// longer those that were deleted? That holds also where versions tell nothing: a deletion does not answer with one, and some servers
// have versions that do not compare.
//
// Both answers come from the cache, not from counting events: an event that was missed, merged with another, or delivered twice
// changes nothing. Nor does an object that others delete before the watch shows it: its version is reached without it.
//
// Concurrency: any owner at any time; what is noted of one owner, and asked about it, by one goroutine at a time.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/util/consistency/consistency.go (KEP-5647), and the expectations of
// pkg/controller/controller_utils.go.
type Gate struct {
	openAfter time.Duration

	mu sync.Mutex
	// owners has what was written for each owner. Invariant: an owner is there only while something written for it may be
	// unseen, or until it is next asked about.
	owners map[ObjectKey]*gated
}

// GateOptions configure a [Gate]. The zero value works.
type GateOptions struct {
	// OpenAfter is how long after the last write [Gate.Ready] waits for objects of which no resource version tells. A cache
	// that does not show them by then never will, and what it does show has to be acted on. Zero means 5 min.
	//
	// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_utils.go, ExpectationsTimeout.
	OpenAfter time.Duration
}

const defaultOpenAfter = 5 * time.Minute

// gated is what was written for one owner.
type gated struct {
	// uid is the owner's. What was written for another of the same name is void.
	uid types.UID
	// marks are the newest versions written, by cache and namespace.
	marks []mark
	// objects are what the caches have yet to show, or to show no longer.
	objects []awaited
	// held says that the owner waits for the whole of OpenAfter.
	held bool
	// since is when something was noted last.
	since time.Time
}

// mark is the newest version written of what a cache holds of one namespace.
type mark struct {
	cache            *GatedCache
	namespace, wrote string
	// read is the watermark of the cache when that was noted. Should the watermark ever be lower, then the server's history
	// went back, as after restoring a backup, and wrote means nothing any more.
	read string
	// history is the number of the server's history that the cache was of. In a later one, too, wrote means nothing.
	history int64
}

// awaited is an object that was written or deleted.
type awaited struct {
	cache   *GatedCache
	key     ObjectKey
	uid     types.UID
	version string // "" of what was deleted
	deleted bool
	history int64 // as in mark
}

// NewGate returns an open gate.
func NewGate(o GateOptions) *Gate {
	if o.OpenAfter <= 0 {
		o.OpenAfter = defaultOpenAfter
	}
	return &Gate{openAfter: o.OpenAfter, owners: map[ObjectKey]*gated{}}
}

// GatedCache is an informer of which a [Gate] knows what it should show.
type GatedCache struct {
	gate     *Gate
	resource schema.GroupResource
	store    store
	// expect is [Expect] for the informer.
	expect func(ctx context.Context, obj metav1.Object)
}

// Gated puts the cache of a resource behind the gate.
func Gated[T Object](g *Gate, resource schema.GroupResource, inf informer.Informer[T]) *GatedCache {
	if g == nil || misuse.IsNil(inf) {
		panic("client: Gated: the gate or the informer is nil")
	}
	expect := func(ctx context.Context, obj metav1.Object) { Expect(ctx, inf, resource, obj) }
	return &GatedCache{gate: g, resource: resource, store: stored[T]{inf}, expect: expect}
}

// Wrote notes that obj is as the server answered to a write for owner. If the cache never shows that then the reconcile that ctx is of
// runs again; see [Expect].
func (c *GatedCache) Wrote(ctx context.Context, owner, obj metav1.Object) {
	key, version := ObjectKeyFromObject(obj), obj.GetResourceVersion()
	held, found := c.store.get(key)
	c.gate.note(owner, func(r *gated) {
		r.raise(c, key.Namespace, version)
		if !found || held.GetUID() != obj.GetUID() {
			r.objects = append(r.objects, awaited{cache: c, key: key, uid: obj.GetUID(), version: version, history: c.store.history(key.Namespace)})
		}
	})
	c.expect(ctx, obj)
}

// Deleted notes that obj was deleted for owner, or found to be gone.
func (c *GatedCache) Deleted(owner, obj metav1.Object) {
	c.gate.note(owner, func(r *gated) {
		key := ObjectKeyFromObject(obj)
		r.objects = append(r.objects, awaited{cache: c, key: key, uid: obj.GetUID(), deleted: true, history: c.store.history(key.Namespace)})
	})
}

// Hold keeps owner from being ready for the whole of OpenAfter: after a refusal that will be repeated, as in a namespace that
// is going away.
func (g *Gate) Hold(owner metav1.Object) { g.note(owner, func(r *gated) { r.held = true }) }

// note changes the record of owner, a new one if there is none.
func (g *Gate) note(owner metav1.Object, change func(*gated)) {
	key := ObjectKeyFromObject(owner)
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.owners[key]
	if r == nil || r.uid != owner.GetUID() {
		r = &gated{uid: owner.GetUID()}
		g.owners[key] = r
	}
	change(r)
	r.since = time.Now()
}

func (g *Gate) find(owner metav1.Object) *gated {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.owners[ObjectKeyFromObject(owner)]; r != nil && r.uid == owner.GetUID() {
		return r
	}
	return nil
}

// Forget drops what was noted for the owner of that name: it is gone.
func (g *Gate) Forget(owner ObjectKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.owners, owner)
}

// Len is the number of owners of which something is noted.
func (g *Gate) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.owners)
}

// Reached is nil when the caches have come as far as the newest versions written for owner. Versions that do not compare tell
// nothing, and nothing waits for them.
//
// Errors: a [StaleError].
func (g *Gate) Reached(owner metav1.Object) error {
	if r := g.find(owner); r != nil {
		return r.reached()
	}
	return nil
}

// Ready is nil when the caches show all that was written for owner, and no longer what was deleted; or have had their time.
//
// Errors: a [StaleError].
func (g *Gate) Ready(ctx context.Context, owner metav1.Object) error {
	r := g.find(owner)
	if r == nil {
		return nil
	}
	if err := r.reached(); err != nil {
		return err
	}
	over := time.Since(r.since) > g.openAfter
	r.objects = slices.DeleteFunc(r.objects, awaited.seen)
	switch {
	case len(r.objects) > 0 && over:
		first := r.objects[0]
		klog.FromContext(ctx).Info("Cache does not show own writes and is believed all the same",
			"owner", klog.KObj(owner), "resource", first.cache.resource, "object", first.key, "objects", len(r.objects), "duration", time.Since(r.since))
	case len(r.objects) > 0:
		first := r.objects[0]
		return &StaleError{Resource: first.cache.resource.String(), Key: first.key, Wanted: first.version, Seen: first.cache.store.watermark(first.key.Namespace)}
	case r.held && !over:
		return &StaleError{Resource: "writes of", Key: ObjectKeyFromObject(owner), RetryAfter: g.openAfter - time.Since(r.since)}
	}
	g.Forget(ObjectKeyFromObject(owner))
	return nil
}

// raise notes a version, unless a newer one is noted already.
func (r *gated) raise(c *GatedCache, namespace, version string) {
	if !comparableVersion(version) {
		return
	}
	i := slices.IndexFunc(r.marks, func(m mark) bool { return m.cache == c && m.namespace == namespace })
	switch {
	case i < 0:
		r.marks = append(r.marks, mark{c, namespace, version, c.store.watermark(namespace), c.store.history(namespace)})
	case earlier(r.marks[i].wrote, version), r.marks[i].history != c.store.history(namespace):
		r.marks[i] = mark{c, namespace, version, c.store.watermark(namespace), c.store.history(namespace)}
	}
}

// reached says which cache is behind, if one is.
func (r *gated) reached() error {
	for _, m := range r.marks {
		if at := m.cache.store.watermark(m.namespace); earlier(at, m.wrote) && !earlier(at, m.read) && m.cache.store.history(m.namespace) == m.history {
			return &StaleError{Resource: m.cache.resource.String(), Key: ObjectKey{Namespace: m.namespace}, Wanted: m.wrote, Seen: at}
		}
	}
	return nil
}

// seen says whether the cache shows what was done, or holds another history of the server, which shows what became of it; of versions that compare, only once they are reached: an object that is
// not there then has come and gone.
func (a awaited) seen() bool {
	if a.cache.store.history(a.key.Namespace) > a.history {
		return true
	}
	obj, found := a.cache.store.get(a.key)
	switch same := found && obj.GetUID() == a.uid; {
	case a.deleted:
		return !same || obj.GetDeletionTimestamp() != nil
	case same:
		return true
	}
	mark := a.cache.store.watermark(a.key.Namespace)
	return comparableVersion(a.version) && comparableVersion(mark) && reached(mark, a.version)
}
