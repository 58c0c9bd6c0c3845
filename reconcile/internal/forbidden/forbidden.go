// Package forbidden tracks the permissions that reconciles lack. It is one of the checks beside the loop of package
// reconcile.
//
// When a permission is revoked, every key that needs it fails again and again. This is one problem and is reported
// once, not for each key. One key, the probe, tries again every [ProbeEvery]: that is enough to notice that the
// permission was granted.
package forbidden

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/reconcile/internal/overdue"
)

// ProbeEvery is how often the probe tries again, and so the longest time until a granted permission is noticed.
const ProbeEvery = 30 * time.Second

// Permissions maps each missing permission to the keys that lack it. The entry of a key in package reconcile has the
// permission that the key lacks.
//
// Concurrency: the caller locks.
type Permissions[K comparable] map[string]*missing[K]

// missing is one permission.
type missing[K comparable] struct {
	since time.Time
	// keys are the keys that lack the permission. Invariant: there is at least one.
	keys map[K]struct{}
	// probe is the key that tries again every ProbeEvery. Invariant: it is one of keys.
	probe K
	// retried is when remove last returned all keys.
	retried time.Time
}

// Denial describes a reconcile that failed because a permission is missing. The zero value is any other reconcile.
type Denial struct {
	// Permission is the text that Missing returned.
	Permission string
	// First reports whether no other key lacked the permission before.
	First bool
	// Probe reports whether the key is the one that has to try again within ProbeEvery.
	Probe bool
}

// Missing returns the permission that err reports as missing, without the namespace: `User "x" cannot create resource
// "pods" in API group ""`. It returns "" for all other errors. Errors of admission, for example those of a quota or of
// a terminating namespace, are Forbidden as well, but no permission is missing.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/responsewriters, ForbiddenStatusError.
func Missing(err error) string {
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

// Update records which permission a key lacks: before is the permission that it lacked until now, and now the one that
// it lacks from now on. Each may be empty. Update returns the keys that should try again at once, because key was the
// probe of before and no longer lacks it. If key was the last key that lacked before, lasted is how long that
// permission was missing; otherwise lasted is zero.
func (p Permissions[K]) Update(key K, before, now string) (d Denial, retry []K, lasted time.Duration) {
	if before != "" && before != now {
		retry, lasted = p.remove(key, before)
	}
	if now != "" {
		d = p.add(key, now)
	}
	return d, retry, lasted
}

func (p Permissions[K]) add(key K, permission string) Denial {
	m, known := p[permission]
	if !known {
		m = &missing[K]{since: time.Now(), keys: map[K]struct{}{}, probe: key}
		p[permission] = m
	}
	m.keys[key] = struct{}{}
	return Denial{Permission: permission, First: !known, Probe: m.probe == key}
}

func (p Permissions[K]) remove(key K, permission string) (retry []K, lasted time.Duration) {
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
		retry = append(retry, other)
	}
	// Some keys may need the permission in other namespaces, where it is still missing. So not all keys try again each
	// time that a probe succeeds.
	if time.Since(m.retried) < ProbeEvery {
		return []K{m.probe}, 0
	}
	m.retried = time.Now()
	return retry, 0
}

// Health returns one error for each permission, the one that has been missing for longest first.
func (p Permissions[K]) Health(name string) (problems []error) {
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
		problems = append(problems, fmt.Errorf("%s: %s forbidden for %s: %s", name, overdue.Count(len(m.keys)),
			time.Since(m.since).Round(time.Second), m.permission))
	}
	return problems
}
