package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Changes are what was written to a store since some moment, for people: how many times what was done to objects of which resource.
type Changes struct {
	Created, Updated, Deleted map[string]int
	// Untold says that there was more than the store remembers.
	Untold bool
}

// ChangesSince reads what was written after a revision under a prefix, a tenant's for example. Kubernetes' events are left out: those
// only tell.
//
// Errors: those of Watch, but for [ErrCompacted], which is Untold.
func ChangesSince(ctx context.Context, s Storage, prefix string, revision int64) (Changes, error) {
	c := Changes{Created: map[string]int{}, Updated: map[string]int{}, Deleted: map[string]int{}}
	w, err := s.Watch(ctx, prefix, revision)
	if err != nil {
		return c.unlessCompacted(err)
	}
	defer w.Close()
	events, _, err := w.Poll()
	if err != nil {
		return c.unlessCompacted(err)
	}
	for _, e := range events {
		key, err := ParseKey(e.Key)
		if err != nil {
			return c, err
		}
		switch {
		case key.Resource == "events":
		case e.Deleted:
			c.Deleted[key.Resource]++
		case e.Previous.Revision == NoRevision:
			c.Created[key.Resource]++
		default:
			c.Updated[key.Resource]++
		}
	}
	return c, nil
}

func (c Changes) unlessCompacted(err error) (Changes, error) {
	if !errors.Is(err, ErrCompacted) {
		return c, err
	}
	c.Untold = true
	return c, nil
}

// None says whether nothing changed.
func (c Changes) None() bool {
	return !c.Untold && len(c.Created)+len(c.Updated)+len(c.Deleted) == 0
}

// String is one line: "created 2 pods; updated 1 deployments, 4 pods", or "nothing changed".
func (c Changes) String() string {
	if c.Untold {
		return "more changes than the store remembers"
	}
	if c.None() {
		return "nothing changed"
	}
	var parts []string
	for _, kind := range []struct {
		verb   string
		counts map[string]int
	}{{"created", c.Created}, {"updated", c.Updated}, {"deleted", c.Deleted}} {
		var counts []string
		for resource, n := range kind.counts {
			counts = append(counts, fmt.Sprintf("%d %s", n, resource))
		}
		if len(counts) > 0 {
			slices.SortFunc(counts, func(a, b string) int {
				return strings.Compare(a[strings.IndexByte(a, ' '):], b[strings.IndexByte(b, ' '):])
			})
			parts = append(parts, kind.verb+" "+strings.Join(counts, ", "))
		}
	}
	return strings.Join(parts, "; ")
}
