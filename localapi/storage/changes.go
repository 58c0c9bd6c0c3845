package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Changes summarizes for people what was written to a store: how many objects of each resource were created, updated
// and deleted.
type Changes struct {
	Created, Updated, Deleted map[string]int
	// Compacted means that the store no longer has all changes.
	Compacted bool
}

// ChangesSince counts what was written after a revision under a prefix, such as that of a tenant. It leaves out
// Kubernetes' events, which only report other changes.
//
// Errors: those of Watch, except [ErrCompacted], which sets Compacted.
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
	c.Compacted = true
	return c, nil
}

// None reports whether nothing changed.
func (c Changes) None() bool {
	return !c.Compacted && len(c.Created)+len(c.Updated)+len(c.Deleted) == 0
}

// String returns one line: "created 2 pods; updated 1 deployments, 4 pods", or "nothing changed".
func (c Changes) String() string {
	if c.Compacted {
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
