package writes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/wire"
)

const (
	// relistAfter is how long the server must contradict a cache before the cache is listed anew. A watch rarely lags
	// more than that.
	relistAfter = time.Second
	// relistAgainAfter is the shortest time between two lists of a cache because of contradictions.
	relistAgainAfter = 30 * time.Second
	// forgetContradictionAfter is how long a contradiction is remembered after the server last repeated it. A reconcile
	// that is contradicted is held back for a shorter time.
	forgetContradictionAfter = 2 * time.Minute
	// maxContradictions bounds the contradictions remembered of one cache. The bound is for each cache, so that a cache
	// that is far behind does not hide the contradictions of another.
	maxContradictions = 100
)

// ContradictionError reports that the server has no such object, while a cache still holds it.
type ContradictionError struct {
	// Resource is the plural name with the group. Key names the object: "namespace/name", or "name".
	Resource, Key string
	// Since is when the server first refused a request because of it.
	Since time.Time

	stands func() bool
}

// Stands reports whether the cache still holds the object.
func (e *ContradictionError) Stands() bool { return e.stands == nil || e.stands() }

func (e *ContradictionError) Error() string {
	return fmt.Sprintf("the server has had no %s %s for %v, but the cache holds it: relisting",
		e.Resource, e.Key, time.Since(e.Since).Round(time.Second))
}

// compare handles an answer that refuses a request. If the server has no such object and a cache holds one, compare
// passes a [ContradictionError] to the function under [ContradictionKey]. Shortly after a deletion such a contradiction
// is normal. If it lasts for relistAfter, the cache is listed anew.
func (r *Record) compare(ctx context.Context, to wire.Place, response *http.Response) {
	if to.Key.Name == "" || r.caches().None() || !refusesAbsent(response) {
		return
	}
	var last *ContradictionError
	for _, c := range r.caches().Holding(to.Resource, to.Key.Namespace) {
		if err := r.contradictions.add(ctx, c, to.Key); err != nil {
			last = err
		}
	}
	if report, ok := ctx.Value(ContradictionKey).(func(*ContradictionError)); ok && last != nil {
		report(last)
	}
}

// preconditionUID is in the server's message when it refuses a write because another object has the name.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/interfaces.go, Preconditions.Check.
const preconditionUID = "UID in precondition"

// maxRefusal bounds how much of an answer that refuses a request is read.
const maxRefusal = 64 << 10

// refusesAbsent reports whether the server refused a request because it has no such object, or another one under the
// name. The caller can still read the body.
func refusesAbsent(response *http.Response) bool {
	switch response.StatusCode {
	case http.StatusNotFound:
		return true
	case http.StatusConflict:
		head, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), response.Body), response.Body}
		return err == nil && bytes.Contains(head, []byte(preconditionUID))
	}
	return false
}

// contradictions has the objects that caches hold, but that the server does not have according to its answers.
type contradictions struct {
	mu sync.Mutex
	// observed has the answers about each object. Invariant: it has at most maxContradictions elements for each cache.
	observed map[contradiction]answers
	// relisted is when each cache was last listed because of a contradiction.
	relisted map[informer.Cache]time.Time
}

// contradiction is an object that a cache holds.
type contradiction struct {
	cache informer.Cache
	key   types.NamespacedName
	uid   types.UID
}

// answers are the times of the first and the last answer that contradicted a cache. rebuilds is how often the cache had
// been rebuilt when the first came.
type answers struct {
	first, last time.Time
	rebuilds    int64
}

// lasting reports whether the contradiction is too old to come from a watch that is a little late.
func (a answers) lasting() bool { return a.last.Sub(a.first) >= relistAfter }

// add records that the server has no such object. It returns nil if the cache has none either.
func (x *contradictions) add(ctx context.Context, c informer.Cache, key types.NamespacedName) *ContradictionError {
	obj, found := c.Get(key.Namespace, key.Name)
	if !found {
		return nil
	}
	err, relist := x.note(contradiction{c, key, obj.GetUID()})
	if relist {
		klog.FromContext(ctx).Info("The server contradicts the cache: relisting", "resource", err.Resource,
			"object", err.Key, "duration", time.Since(err.Since))
		c.Relist(key.Namespace, func() error { return x.longest(c) })
	}
	return err
}

// note is the part of add under the lock. relist reports whether the cache has to be listed anew.
func (x *contradictions) note(what contradiction) (err *ContradictionError, relist bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forgetLocked()
	now := time.Now()
	known, before := x.observed[what]
	if !before {
		known = answers{first: now, rebuilds: what.cache.Rebuilds()}
	}
	known.last = now
	if before || x.countLocked(what.cache) < maxContradictions {
		x.observed[what] = known
	}
	_, recently := x.relisted[what.cache]
	if relist = known.lasting() && !recently; relist {
		x.relisted[what.cache] = now
	}
	return what.error(known.first), relist
}

// countLocked returns the number of contradictions of a cache.
func (x *contradictions) countLocked(c informer.Cache) (n int) {
	for what := range x.observed {
		if what.cache == c {
			n++
		}
	}
	return n
}

// longest returns the oldest lasting contradiction of a cache; nil if there is none.
func (x *contradictions) longest(c informer.Cache) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forgetLocked()
	var oldest error
	var since time.Time
	for what, known := range x.observed {
		if what.cache == c && known.lasting() && (oldest == nil || known.first.Before(since)) {
			oldest, since = what.error(known.first), known.first
		}
	}
	return oldest
}

// forgetLocked drops the contradictions that have ended: the cache no longer holds the object, was rebuilt, or was not
// contradicted again for long.
func (x *contradictions) forgetLocked() {
	maps.DeleteFunc(x.observed, func(what contradiction, known answers) bool {
		return !what.stands() || what.cache.Rebuilds() != known.rebuilds ||
			time.Since(known.last) > forgetContradictionAfter
	})
	maps.DeleteFunc(x.relisted, func(_ informer.Cache, at time.Time) bool { return time.Since(at) >= relistAgainAfter })
}

// prune forgets the caches that are not used any more.
func (x *contradictions) prune(used []informer.Cache) {
	x.mu.Lock()
	defer x.mu.Unlock()
	dropped := func(c informer.Cache) bool { return !slices.Contains(used, c) }
	maps.DeleteFunc(x.observed, func(what contradiction, _ answers) bool { return dropped(what.cache) })
	maps.DeleteFunc(x.relisted, func(c informer.Cache, _ time.Time) bool { return dropped(c) })
}

// stands reports whether the cache still holds the object.
func (c contradiction) stands() bool {
	obj, found := c.cache.Get(c.key.Namespace, c.key.Name)
	return found && obj.GetUID() == c.uid
}

func (c contradiction) error(since time.Time) *ContradictionError {
	return &ContradictionError{
		Resource: c.cache.Resource(), Key: strings.TrimPrefix(c.key.String(), "/"), Since: since, stands: c.stands,
	}
}
