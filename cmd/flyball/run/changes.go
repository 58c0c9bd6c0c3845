package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// changes are what happened to the objects of a tenant, by resource, events left out: those only tell.
type changes struct {
	created, updated, deleted map[string]int
	// untold says that there was more than the store remembers.
	untold bool
}

// changesSince reads the history.
func changesSince(ctx context.Context, objects storage.Storage, tenant string, revision int64) (changes, error) {
	c := changes{created: map[string]int{}, updated: map[string]int{}, deleted: map[string]int{}}
	w, err := objects.Watch(ctx, storage.TenantPrefix(tenant), revision)
	if errors.Is(err, storage.ErrCompacted) {
		c.untold = true
		return c, nil
	}
	if err != nil {
		return c, err
	}
	defer w.Close()
	events, _, err := w.Poll()
	if err != nil {
		return c, err
	}
	for _, e := range events {
		key, err := storage.ParseKey(e.Key)
		if err != nil {
			return c, err
		}
		switch {
		case key.Resource == "events":
		case e.Deleted:
			c.deleted[key.Resource]++
		case e.Previous.Revision == storage.NoRevision:
			c.created[key.Resource]++
		default:
			c.updated[key.Resource]++
		}
	}
	return c, nil
}

// none says whether nothing changed.
func (c changes) none() bool {
	return !c.untold && len(c.created)+len(c.updated)+len(c.deleted) == 0
}

// String is one line.
func (c changes) String() string {
	if c.untold {
		return "more changes than the store remembers"
	}
	if c.none() {
		return "nothing changed"
	}
	var parts []string
	for _, kind := range []struct {
		verb   string
		counts map[string]int
	}{{"created", c.created}, {"updated", c.updated}, {"deleted", c.deleted}} {
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
