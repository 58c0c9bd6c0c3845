package ownwrites

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/cachecheck"
	"github.com/flyball-dev/flyball/internal/ownwrites/wire"
	"github.com/flyball-dev/flyball/internal/versions"
)

// forgetDeletedAfter and forgetIncomparableAfter bound how long an entry is kept when nothing shows that it may go: for
// a deleted object that no cache ever held, and for servers whose versions do not compare.
const (
	forgetDeletedAfter      = 10 * time.Minute
	forgetIncomparableAfter = time.Minute
)

// Entry is the server's answer to the newest own write of one object. It is laid over every cache that is behind it. It
// does not change once it is in the record.
type Entry struct {
	Key ObjectKey
	GVK schema.GroupVersionKind
	// Gone reports whether the object with uid was deleted: it never comes back.
	Gone bool
	// Version is that of the state in Body. If Gone, it is a version at which the object existed; "" if none is known.
	Version string
	// Body is the object as the server sent it, in ContentType; nil when it did not send the object itself.
	Body        []byte
	ContentType string

	uid   types.UID
	owner any
	at    time.Time
	// history is the number of the server's history that Version belongs to.
	history int64
	// abandoned reports that nobody waits for it. It is guarded by the resource's mu.
	abandoned bool

	// expected is the state that the informers look for. If one of them never shows it, readers are woken.
	expected cachecheck.Expected
	readers  readers

	mu sync.Mutex
	// views has the object in the form in which each cache would hold it.
	views map[Cache]any
}

// UID returns the UID of the object.
func (e *Entry) UID() types.UID { return e.uid }

// Missed reports whether a cache passed the state without showing it.
func (e *Entry) Missed() bool { return e.readers.hasMissed() }

// AheadOf reports whether the cache shows an earlier history of the server than the entry's.
func (e *Entry) AheadOf(c Cache) bool { return c.History(e.Key.Namespace) < e.history }

// View returns the object of e in the form in which c would hold it. It calls hold to decode it, once for each cache.
func View[T any](e *Entry, c Cache, hold func(contentType string, body []byte) (T, error)) (T, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if obj, known := e.views[c].(T); known {
		return obj, nil
	}
	obj, err := hold(e.ContentType, e.Body)
	if err != nil {
		return obj, err
	}
	if e.views == nil {
		e.views = map[Cache]any{}
	}
	e.views[c] = obj
	return obj, nil
}

// coveredBy reports whether the cache has reached the state of e, or does not follow the object.
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
		return held > e.history // A list of a later history shows the effect; one of an earlier does not.
	}
	if e.Gone {
		if held, found := c.Held(e.Key); found && held.GetUID() == e.uid {
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
	held, found := c.Held(e.Key)
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

// written returns the entry as [cachecheck.Caches] look for it. For a deleted object they look for the UID: they may
// have shown its last version long before.
func (e *Entry) written(resource schema.GroupResource) cachecheck.Written {
	w := cachecheck.Written{Resource: resource, Namespace: e.Key.Namespace, Name: e.Key.Name, UID: e.uid}
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
