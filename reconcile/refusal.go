package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/workqueue"
)

// refusals are the permissions that reconciles lack. Whoever takes one away makes every key fail that needs it, again and again: it is
// one thing to tell, and one key that asks now and then is enough to learn that it was granted.
type refusals[K comparable] struct {
	mu sync.Mutex
	// missing holds them by what the API server says of them. Invariant: each has keys.
	missing map[string]*refusal[K]
	// of says which one a key lacked last. Invariant: k is in missing[of[k]].keys, and nowhere else.
	of map[K]string
}

// refusal is one permission that is missing.
type refusal[K comparable] struct {
	since time.Time
	keys  map[K]struct{}
	scout K // the one of keys that asks every refusedRetry
	// asked is when all keys were last asked to try again.
	asked time.Time
}

// refusedRetry is how long it takes at most until a permission is noticed that was granted.
const refusedRetry = 30 * time.Second

// lacking returns the permission that err says is missing, without the namespace: `User "x" cannot create resource "pods" in API
// group ""`. It is empty for other errors, those that admission forbids among them (a quota, a namespace that ends).
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/responsewriters, ForbiddenStatusError.
func lacking(err error) string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || !apierrors.IsForbidden(err) {
		return ""
	}
	_, text, ok := strings.Cut(status.Status().Message, `forbidden: User "`)
	if !ok || !strings.Contains(text, `" cannot `) {
		return ""
	}
	for _, end := range []string{` in the namespace "`, " at the cluster scope", ": "} {
		text, _, _ = strings.Cut(text, end)
	}
	return `User "` + text
}

// refused notes that key lacks the permission. isNews says that no other key did, isScout that this one is to ask again soon.
func (r *refusals[K]) refused(key K, permission string) (isNews, isScout bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lacks := r.missing[permission]
	if lacks == nil {
		if r.missing == nil {
			r.missing, r.of = map[string]*refusal[K]{}, map[K]string{}
		}
		lacks = &refusal[K]{since: time.Now(), keys: map[K]struct{}{}, scout: key}
		r.missing[permission] = lacks
		isNews = true
	}
	lacks.keys[key] = struct{}{}
	r.of[key] = permission
	return isNews, lacks.scout == key
}

// settled notes that key does not lack the permission any more that it did, unless it is still. others are the keys that should ask now
// if this was the scout: all of them, but not too often. lasted is not zero if it was the last one.
func (r *refusals[K]) settled(key K, still string) (permission string, others []K, lasted time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	permission, lacked := r.of[key]
	if !lacked || permission == still {
		return "", nil, 0
	}
	delete(r.of, key)
	lacks := r.missing[permission]
	delete(lacks.keys, key)
	if len(lacks.keys) == 0 {
		delete(r.missing, permission)
		return permission, nil, max(time.Since(lacks.since), 1)
	}
	if lacks.scout != key {
		return permission, nil, 0
	}
	for other := range lacks.keys {
		lacks.scout = other
		others = append(others, other)
	}
	if time.Since(lacks.asked) < refusedRetry {
		return permission, []K{lacks.scout}, 0
	}
	lacks.asked = time.Now()
	return permission, others, 0
}

// complaints says what is missing, the oldest first.
func (r *refusals[K]) complaints(name string) (all []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	permissions := make([]string, 0, len(r.missing))
	for permission := range r.missing {
		permissions = append(permissions, permission)
	}
	slices.SortFunc(permissions, func(a, b string) int {
		if c := r.missing[a].since.Compare(r.missing[b].since); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	for _, permission := range permissions {
		lacks := r.missing[permission]
		noun := "keys"
		if len(lacks.keys) == 1 {
			noun = "key"
		}
		all = append(all, fmt.Errorf("%s: %d %s refused for %s: %s", name, len(lacks.keys), noun, time.Since(lacks.since).Round(time.Second), permission))
	}
	return all
}

// allowed lets those keys ask that lacked the permission that key does not lack any more, unless it is still, and logs when there are
// none.
func (c *Controller[K]) allowed(ctx context.Context, key K, still string) {
	permission, others, lasted := c.refusals.settled(key, still)
	c.askAgain(others)
	if lasted > 0 {
		klog.FromContext(ctx).Info("Reconciles are refused no more", "controller", c.name, "permission", permission, "duration", lasted)
	}
}

func (c *Controller[K]) askAgain(keys []K) {
	for _, key := range keys {
		c.queue.AddWith(key, workqueue.AddOptions{Cause: c.cause(WhyRetry)})
	}
}

// retry puts a key back that failed. What the API server refuses for want of a permission is logged once for all keys.
func (c *Controller[K]) retry(logger klog.Logger, item workqueue.Item[K], result Result, err error, permission string) {
	again := workqueue.AddOptions{
		RateLimited: true, Priority: result.priority(item.Priority),
		Cause: c.cause(WhyRetry),
	}
	isNews, isScout := true, false
	if permission != "" {
		isNews, isScout = c.refusals.refused(item.Key, permission)
	}
	switch {
	case permission == "":
		logger.Error(err, "Reconcile failed and is retried with backoff")
	case isNews:
		logger.Error(err, "Reconcile is refused, as are all that need the permission; it is retried with backoff")
	default:
		logger.V(4).Info("Reconcile is refused and retried with backoff", "err", err)
	}
	c.fails(item.Key)
	c.failures.failed(item, err, false)
	c.stats.retries.Add(1)
	c.queue.AddWith(item.Key, again)
	if isScout {
		again.RateLimited, again.After, again.Requeue, again.Earliest = false, refusedRetry, true, true
		c.queue.AddWith(item.Key, again)
	}
}
