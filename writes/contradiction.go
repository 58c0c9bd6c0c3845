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
	// relistAfter is how long the server must contradict a cache before the cache is listed anew. A watch is rarely
	// later than that.
	relistAfter = time.Second
	// relistAgainAfter is the shortest time between two lists of a cache because of contradictions.
	relistAgainAfter = 30 * time.Second
	// forgetContradictionAfter is how long a contradiction is remembered after the server last repeated it. A reconcile
	// that is contradicted is held back for a shorter time.
	forgetContradictionAfter = 2 * time.Minute
	// maxContradictions bounds the contradictions remembered of one cache.
	maxContradictions = 100
)

// ContradictionError reports that the server has no such object, while a cache still holds it.
type ContradictionError struct {
	// Resource is the plural name with the group. Key names the object: "namespace/name", or "name".
	Resource, Key string
	// Since is when the server first refused a request because of it.
	Since time.Time

	holds func() bool
}

// Stands reports whether the cache still holds the object.
func (e *ContradictionError) Stands() bool { return e.holds == nil || e.holds() }

func (e *ContradictionError) Error() string {
	return fmt.Sprintf("the server has had no %s %s for %v, but the cache holds it: relisting",
		e.Resource, e.Key, time.Since(e.Since).Round(time.Second))
}

// compare looks at a refusing answer. If the server has no such object and a cache holds one, it passes a
// [ContradictionError] to the function under [ContradictionKey]. Soon after a deletion that is normal. If it lasts for
// a second, the cache is listed anew.
func (r *Record) compare(ctx context.Context, to wire.Place, response *http.Response) {
	if to.Key.Name == "" || r.caches() == nil || !refusesAbsent(response) {
		return
	}
	r.contradictions.prune(r.caches().All())
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

// maxRefusal bounds how much of a refusing answer is read.
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

// contradictions are the objects that caches hold, but that the server does not have according to its answers.
type contradictions struct {
	mu sync.Mutex
	of map[informer.Cache]*contradicted
}

// contradicted are the contradictions of one cache. The mu of contradictions guards it.
type contradicted struct {
	cache informer.Cache
	// answers has the answers about each object. Invariant: it has at most maxContradictions elements.
	answers map[object]answers
	// relisted is when the cache was last listed because of a contradiction.
	relisted time.Time
}

type object struct {
	key types.NamespacedName
	uid types.UID
}

// answers are the times of the first and the last answer that contradicted the cache, which had been rebuilt that many
// times when the first came.
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
	err, of := x.note(c, object{key, obj.GetUID()})
	if of != nil {
		klog.FromContext(ctx).Info("The server contradicts the cache: relisting", "resource", err.Resource,
			"object", err.Key, "duration", time.Since(err.Since))
		c.Relist(key.Namespace, func() error { return x.longest(of) })
	}
	return err
}

// note is the part of add under the lock. It returns the contradictions of the cache if it has to be listed anew.
func (x *contradictions) note(c informer.Cache, what object) (err *ContradictionError, relist *contradicted) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := x.of[c]
	if of == nil {
		of = &contradicted{cache: c, answers: map[object]answers{}}
		x.of[c] = of
	}
	of.forgetLocked()
	now := time.Now()
	known, before := of.answers[what]
	if !before {
		known = answers{first: now, rebuilds: c.Rebuilds()}
	}
	known.last = now
	if before || len(of.answers) < maxContradictions {
		of.answers[what] = known
	}
	if known.lasting() && (of.relisted.IsZero() || now.Sub(of.relisted) >= relistAgainAfter) {
		of.relisted, relist = now, of
	}
	return of.error(what, known.first), relist
}

// prune forgets the caches that are no longer used, so that they can be freed.
func (x *contradictions) prune(used []informer.Cache) {
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.of, func(c informer.Cache, _ *contradicted) bool { return !slices.Contains(used, c) })
}

// longest returns the oldest lasting contradiction of a cache; nil if there is none.
func (x *contradictions) longest(of *contradicted) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	of.forgetLocked()
	var oldest *ContradictionError
	for what, known := range of.answers {
		if known.lasting() && (oldest == nil || known.first.Before(oldest.Since)) {
			oldest = of.error(what, known.first)
		}
	}
	if oldest == nil {
		return nil
	}
	return oldest
}

// forgetLocked drops the contradictions that have ended: the cache no longer holds the object, was rebuilt, or was not
// contradicted again for long.
func (of *contradicted) forgetLocked() {
	maps.DeleteFunc(of.answers, func(what object, known answers) bool {
		return !of.holds(what) || of.cache.Rebuilds() != known.rebuilds ||
			time.Since(known.last) > forgetContradictionAfter
	})
}

func (of *contradicted) holds(what object) bool {
	obj, found := of.cache.Get(what.key.Namespace, what.key.Name)
	return found && obj.GetUID() == what.uid
}

func (of *contradicted) error(what object, since time.Time) *ContradictionError {
	return &ContradictionError{
		Resource: of.cache.Resource(), Key: strings.TrimPrefix(what.key.Namespace+"/"+what.key.Name, "/"), Since: since,
		holds: func() bool { return of.holds(what) },
	}
}
