// Package forbidden keeps account of the permissions that reconciles lack. It is a room beside the loop of package
// reconcile.
//
// A permission that is taken away makes every key fail that needs it, again and again. That is one thing to report.
// And one key that tries now and then, the probe, is enough to find out that the permission was granted.
package forbidden

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/reconcile/internal/complaint"
)

// ProbeEvery is how long it takes at most until a permission is noticed that was granted.
const ProbeEvery = 30 * time.Second

// Permissions are those that are missing, by what the API server says of them. The zero value is none. Which of them
// a key lacks is kept in the key's record.
//
// Concurrency: the caller locks.
type Permissions[K comparable] map[string]*missing[K]

// missing is one permission.
type missing[K comparable] struct {
	since time.Time
	// keys are those that lack it. Invariant: there is one at least.
	keys map[K]struct{}
	// probe is the one of keys that tries again every ProbeEvery.
	probe K
	// asked is when all keys were last asked to try again.
	asked time.Time
}

// Lacking returns the permission that err reports missing, without the namespace: `User "x" cannot create resource
// "pods" in API group ""`. It is empty for other errors, those included that come from admission (a quota, a
// namespace that terminates).
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/responsewriters, ForbiddenStatusError.
func Lacking(err error) string {
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

// Add notes that key lacks the permission. first reports that no other key did, probe that key is the one to try
// again soon.
func (p Permissions[K]) Add(key K, permission string) (first, probe bool) {
	m := p[permission]
	if m == nil {
		m = &missing[K]{since: time.Now(), keys: map[K]struct{}{}, probe: key}
		p[permission] = m
		first = true
	}
	m.keys[key] = struct{}{}
	return first, m.probe == key
}

// Remove notes that key no longer lacks the permission. If key was the probe, it returns the keys that should try
// again now: all that lack it, or, if they were asked not long ago, one. If key was the last to lack it, lasted is
// how long the permission was missing; else it is zero.
func (p Permissions[K]) Remove(key K, permission string) (others []K, lasted time.Duration) {
	m := p[permission]
	delete(m.keys, key)
	if len(m.keys) == 0 {
		delete(p, permission)
		return nil, max(time.Since(m.since), 1)
	}
	if m.probe != key {
		return nil, 0
	}
	for other := range m.keys {
		m.probe = other
		others = append(others, other)
	}
	if time.Since(m.asked) < ProbeEvery {
		return []K{m.probe}, 0
	}
	m.asked = time.Now()
	return others, 0
}

// Complaints returns one error for each permission, the one first that has been missing for longest.
func (p Permissions[K]) Complaints(name string) (all []error) {
	type named struct {
		permission string
		*missing[K]
	}
	var sorted []named
	for permission, m := range p {
		sorted = append(sorted, named{permission, m})
	}
	slices.SortFunc(sorted, func(a, b named) int {
		return cmp.Or(a.since.Compare(b.since), strings.Compare(a.permission, b.permission))
	})
	for _, m := range sorted {
		all = append(all, fmt.Errorf("%s: %s forbidden for %s: %s", name, complaint.Count(len(m.keys)),
			time.Since(m.since).Round(time.Second), m.permission))
	}
	return all
}
