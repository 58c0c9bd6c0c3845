package writes

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/versions"
	"github.com/flyball-dev/flyball/internal/wire"
	"github.com/flyball-dev/flyball/writes/internal/caches"
)

// forgetDeletedAfter and forgetIncomparableAfter bound how long an entry is kept if no watermark can show that it was
// reached. The first is for a deleted object without a comparable version, the second for other objects of a server
// whose versions cannot be compared.
const (
	forgetDeletedAfter      = 10 * time.Minute
	forgetIncomparableAfter = time.Minute
)

// Entry is the server's answer to the last own write of one object. A read of a cache that is behind the entry shows it
// in place of what the cache has. It does not change once it is in the record.
type Entry struct {
	Key types.NamespacedName
	GVK schema.GroupVersionKind
	// Gone is set if the object with uid was deleted: it never comes back.
	Gone bool
	// Version is the resource version of the state in Body. If Gone is set, it is a version at which the object still
	// existed; "" if none is known.
	Version string
	// Body is the object as the server sent it, in ContentType; nil when it did not send the object itself.
	Body        []byte
	ContentType string

	resource *Resource
	uid      types.UID
	owner    any
	at       time.Time
	// history is the number of the server's history that Version belongs to.
	history int64
	// abandoned is set when RunUntilIdle no longer waits for the entry. It is guarded by the resource's mu.
	abandoned bool

	// expected is the state that the caches have to show. If one of them passes it without showing it, the readers are
	// woken.
	expected caches.Expected
	readers  readers

	mu sync.Mutex
	// views has the object in the form in which each cache would hold it.
	views map[Cache]informer.Object
}

// UID returns the UID of the object.
func (e *Entry) UID() types.UID { return e.uid }

// View returns the object in the form in which c would hold it; nil if [Entry.SetView] was not called for c.
func (e *Entry) View(c Cache) informer.Object {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.views[c]
}

// SetView sets the object in the form in which c would hold it, so that it is decoded once for each cache. If another
// reader has set one already, that one stays. SetView returns the object that is set.
func (e *Entry) SetView(c Cache, obj informer.Object) informer.Object {
	e.mu.Lock()
	defer e.mu.Unlock()
	if first := e.views[c]; first != nil {
		return first
	}
	if e.views == nil {
		e.views = map[Cache]informer.Object{}
	}
	e.views[c] = obj
	return obj
}

// dropView forgets the object of c, so that c can be freed.
func (e *Entry) dropView(c Cache) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.views, c)
}

// Missed reports whether a cache passed the state without showing it.
func (e *Entry) Missed() bool { return e.readers.hasMissed() }

// reachedBy reports whether the cache has reached the state of e, or does not hold objects of the namespace.
func (e *Entry) reachedBy(c Cache) bool { return e.reachedAt(c, c.Watermark(e.Key.Namespace)) }

// reachedAt is reachedBy for callers that know the watermark of e's namespace.
func (e *Entry) reachedAt(c Cache, mark string) bool {
	if !caches.Takes(c.Namespaces(), e.Key.Namespace) {
		return true
	}
	if mark == "" {
		return false
	}
	if held := c.History(e.Key.Namespace); held != e.history {
		return held > e.history // A list of a later history shows the effect; one of an earlier does not.
	}
	if e.Gone {
		if held, found := c.Get(e.Key); found && held.GetUID() == e.uid {
			return false
		}
		if e.Version == "" || !versions.Comparable(e.Version) {
			return time.Since(e.at) > forgetDeletedAfter
		}
		return versions.Reached(mark, e.Version)
	}
	if versions.Reached(mark, e.Version) {
		return true
	}
	if versions.Comparable(e.Version) && versions.Comparable(mark) {
		return false
	}
	held, found := c.Get(e.Key)
	return found && held.GetResourceVersion() == e.Version || time.Since(e.at) > forgetIncomparableAfter
}

// supersedes reports whether e replaces old, an entry of the same key.
func (e *Entry) supersedes(old *Entry) bool {
	if e.history != old.history {
		return e.history > old.history
	}
	if old.uid == e.uid {
		return e.Gone || (!old.Gone && !versions.Earlier(e.Version, old.Version))
	}
	return !versions.Earlier(e.Version, old.Version)
}

// expect makes the factory's caches wake the readers of e if they pass its state without showing it.
func (e *Entry) expect() {
	if e.Gone {
		return
	}
	e.expected = caches.Expected{
		Kind: e.GVK.GroupKind(), Key: e.Key, UID: e.uid, ResourceVersion: e.Version, Selected: e.selectedBy,
		Missed: func() { e.readers.wake(e.resource.Name, e.Key) },
	}
	e.resource.record.caches().Expect(&e.expected)
}

// written returns what the factory's caches have to show. For a deleted object it has no version: the caches have to
// show that the UID is gone, and may have shown its last version long before.
func (e *Entry) written() caches.Written {
	w := caches.Written{Resource: e.resource.Name, Key: e.Key, UID: e.uid}
	if !e.Gone {
		w.ResourceVersion = e.Version
	}
	return w
}

// selectedBy reports whether selectors select the state, whatever Go type a cache decodes it into.
func (e *Entry) selectedBy(byLabels labels.Selector, byFields fields.Selector) bool {
	content, err := wire.Content(e.ContentType, e.Body)
	if err != nil {
		return false
	}
	own, _, err := unstructured.NestedStringMap(content, "metadata", "labels")
	return err == nil && byLabels.Matches(labels.Set(own)) && wire.Selects(byFields, content)
}
