package ownwrites

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/cachecheck"
	"github.com/flyball-dev/flyball/internal/ownwrites/versions"
	"github.com/flyball-dev/flyball/internal/ownwrites/wire"
)

// forgetDeletedAfter and forgetIncomparableAfter are how long an entry is kept whose end cannot be seen: a deletion
// of something that no cache ever held, and objects of a server whose versions do not compare.
const (
	forgetDeletedAfter      = 10 * time.Minute
	forgetIncomparableAfter = time.Minute
)

// Entry is what the server answered to the newest own write of one object. It is laid over every cache that has not
// got so far. It does not change once it is in the record.
type Entry struct {
	Key ObjectKey
	GVK schema.GroupVersionKind
	// Gone says that the object with uid was deleted: it never comes back.
	Gone bool
	// Version is that of the state in Body. Of what is gone, one at which it was there; "" if none is known.
	Version string
	// Body is the object as the server sent it, in ContentType; nil when it did not send the object itself.
	Body        []byte
	ContentType string

	uid   types.UID
	owner any
	at    time.Time
	// history is the number of the server's history that Version is of.
	history int64
	// abandoned says that no [Set] waits for it. It is guarded by the resource's mu.
	abandoned bool

	// expected is what the informers know the state by; readers are woken if one of them never shows it.
	expected cachecheck.Expected
	readers  readers

	mu sync.Mutex
	// views has the object as each cache would hold it.
	views map[Cache]informer.Object
}

// UID returns the object's.
func (e *Entry) UID() types.UID { return e.uid }

// Missed reports whether a cache came past the state and never showed it.
func (e *Entry) Missed() bool { return e.readers.hasMissed() }

// AheadOf reports whether the cache is of an earlier history of the server than the entry.
func (e *Entry) AheadOf(c Cache) bool { return c.History(e.Key.Namespace) < e.history }

// View returns the object as c would hold it. hold decodes it, once for each cache.
func (e *Entry) View(c Cache,
	hold func(contentType string, body []byte) (informer.Object, error),
) (informer.Object, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if obj := e.views[c]; obj != nil {
		return obj, nil
	}
	obj, err := hold(e.ContentType, e.Body)
	if err != nil {
		return nil, err
	}
	if e.views == nil {
		e.views = map[Cache]informer.Object{}
	}
	e.views[c] = obj
	return obj, nil
}

// coveredBy reports whether the cache has seen all that e tells.
func (e *Entry) coveredBy(c Cache) bool { return e.coveredAt(c, c.Watermark(e.Key.Namespace)) }

// coveredAt is coveredBy for callers that know the watermark of e's namespace.
func (e *Entry) coveredAt(c Cache, mark string) bool {
	if !c.Follows(e.Key.Namespace) {
		return true
	}
	if mark == "" {
		return false
	}
	if held := c.History(e.Key.Namespace); held != e.history {
		return held > e.history // A list of a later history shows what became of it, one of an earlier does not.
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

// supersedes reports whether e is to replace old, an entry of the same key.
func (e *Entry) supersedes(old *Entry) bool {
	if e.history != old.history {
		return e.history > old.history
	}
	if old.uid == e.uid {
		return e.Gone || (!old.Gone && !versions.Earlier(e.Version, old.Version))
	}
	return !versions.Earlier(e.Version, old.Version)
}

// written is the entry as [cachecheck.Caches] look for it. What is gone is looked for by its UID: the caches may
// have shown its last version for long.
func (e *Entry) written(resource schema.GroupResource) cachecheck.Written {
	w := cachecheck.Written{Resource: resource, Namespace: e.Key.Namespace, Name: e.Key.Name, UID: e.uid}
	if !e.Gone {
		w.ResourceVersion = e.Version
	}
	return w
}

// selectedBy reports whether selectors select the state, whatever it is read as.
func (e *Entry) selectedBy(byLabels labels.Selector, byFields fields.Selector) bool {
	content, err := wire.Content(e.ContentType, e.Body)
	if err != nil {
		return false
	}
	own, _, err := unstructured.NestedStringMap(content, "metadata", "labels")
	return err == nil && byLabels.Matches(labels.Set(own)) && wire.Selects(byFields, content)
}
