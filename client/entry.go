package client

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

// forgetAfter is how long an entry is kept whose end cannot be seen: a deletion of something that no cache ever held, and
// objects of a server whose versions cannot be compared.
const (
	forgetDeletedAfter      = 10 * time.Minute
	forgetIncomparableAfter = time.Minute
)

// entry is what the server answered to the newest own write of one object. It is laid over every cache that has not got so
// far. Not changed once it is in the books.
type entry struct {
	key   ObjectKey
	kind  kind
	uid   types.UID
	owner any
	at    time.Time
	// gone says that the object with uid was deleted: it never comes back.
	gone bool
	// version is that of the state in raw. Of what is gone, one at which it was there; "" if none is known.
	version string
	// history is the number of the server's history that version is of.
	history int64
	// raw is the object, as the server sent it; nil when it did not send the object itself.
	raw []byte

	// expected is what the informers know the state by; knowers are woken if one of them never shows it.
	expected informer.Expected
	knowers  knowers

	mu sync.Mutex
	// views has the object as each cache would hold it.
	views map[*cache]Object
}

// coveredBy says whether the cache has seen all that e tells.
func (e *entry) coveredBy(c *cache) bool {
	return e.coveredAt(c, c.store.watermark(e.key.Namespace))
}

// coveredAt is coveredBy for who knows the watermark of e's namespace.
func (e *entry) coveredAt(c *cache, mark string) bool {
	if !c.follows(e.key.Namespace) {
		return true
	}
	if mark == "" {
		return false
	}
	if held := c.store.history(e.key.Namespace); held != e.history {
		return held > e.history // A list of a later history shows what became of it, one of an earlier does not.
	}
	if e.gone {
		if held, found := c.store.get(e.key); found && held.GetUID() == e.uid {
			return false
		}
		if e.version == "" || !comparableVersion(e.version) {
			return time.Since(e.at) > forgetDeletedAfter
		}
		return reached(mark, e.version)
	}
	if reached(mark, e.version) {
		return true
	}
	if comparableVersion(e.version) && comparableVersion(mark) {
		return false
	}
	held, found := c.store.get(e.key)
	return found && held.GetResourceVersion() == e.version || time.Since(e.at) > forgetIncomparableAfter
}

// exactFor says whether the object can be shown to readers of c.
func (e *entry) exactFor(c *cache) bool {
	return e.gone || (e.raw != nil && e.kind.gvk == c.kind.gvk)
}

// view returns the object as c would hold it: in its representation, transformed, without what it strips.
func (e *entry) view(c *cache) (Object, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if obj := e.views[c]; obj != nil {
		return obj, nil
	}
	obj, err := c.kind.make(c.scheme)
	if err != nil {
		return nil, err
	}
	if err := decode(e.raw, obj); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(c.kind.gvk)
	for _, transform := range c.transforms {
		if obj, err = transform(obj); err != nil {
			return nil, fmt.Errorf("transform %s: %w", e.key, err)
		}
	}
	if e.views == nil {
		e.views = map[*cache]Object{}
	}
	e.views[c] = obj
	return obj, nil
}

// supersedes says whether e is to replace old, an entry of the same key.
func (e *entry) supersedes(old *entry) bool {
	if e.history != old.history {
		return e.history > old.history
	}
	if old.uid == e.uid {
		return e.gone || (!old.gone && !earlier(e.version, old.version))
	}
	return !earlier(e.version, old.version)
}

// over lays entries over what was read from the cache. It returns those, too, that are shown.
func (c *cache) over(q *query, objs []Object, entries []*entry) (_ []Object, shown []*entry, err error) {
	byKey := make(map[ObjectKey]*entry, len(entries))
	for _, e := range entries {
		byKey[e.key] = e
	}
	objs = slices.DeleteFunc(objs, func(obj Object) bool {
		key := ObjectKeyFromObject(obj)
		e := byKey[key]
		switch {
		case e == nil:
			return false
		case e.gone:
			return obj.GetUID() == e.uid
		case earlier(e.version, obj.GetResourceVersion()):
			delete(byKey, key) // The cache has got on since the entries were looked up.
			return false
		}
		return true
	})
	for _, e := range byKey {
		if e.gone {
			continue
		}
		obj, err := e.view(c)
		if err != nil {
			return nil, nil, err
		}
		if c.matches(q, obj) {
			objs, shown = append(objs, obj), append(shown, e)
		}
	}
	return objs, shown, nil
}

// fieldAt returns the text of the scalar at a path like "spec.nodeName".
func fieldAt(object map[string]any, path string) string {
	var at any = object
	for name := range strings.SplitSeq(path, ".") {
		m, isMap := at.(map[string]any)
		if !isMap {
			return ""
		}
		at = m[name]
	}
	if at == nil {
		return ""
	}
	return fmt.Sprint(at)
}
