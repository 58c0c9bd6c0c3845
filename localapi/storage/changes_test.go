package storage_test

import (
	"testing"

	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
)

// TestChangesSince: what happened to a tenant's objects in words; to those of others, and to events, nothing did.
func TestChangesSince(t *testing.T) {
	ctx, s := t.Context(), memory.New()
	defer s.Close()
	put := func(tenant, resource, name string, expected int64) int64 {
		t.Helper()
		key := storage.Key{Tenant: tenant, Resource: resource, Namespace: "ns", Name: name}.String()
		revision, err := s.Put(ctx, storage.Write{Key: key, Value: []byte("v"), Expected: expected})
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	says := func(revision int64, want string) {
		t.Helper()
		changes, err := storage.ChangesSince(ctx, s, storage.TenantPrefix("a"), revision)
		if err != nil || changes != want {
			t.Errorf("since %d: %q, %v, want %q", revision, changes, err, want)
		}
	}
	says(storage.FirstRevision, "nothing changed")
	first := put("a", "pods", "x", storage.NoRevision)
	put("ab", "pods", "x", storage.NoRevision)
	put("a", "events", "x", storage.NoRevision)
	says(storage.FirstRevision, "created 1 pods")
	second := put("a", "pods", "x", first)
	put("a", "pods", "x", second)
	put("a", "jobs", "x", storage.NoRevision)
	says(first, "created 1 jobs; updated 2 pods")
	gone, err := s.Delete(ctx, storage.Key{Tenant: "a", Resource: "jobs", Namespace: "ns", Name: "x"}.String(),
		latest(s))
	if err != nil {
		t.Fatal(err)
	}
	says(gone-1, "deleted 1 jobs")
	says(gone, "nothing changed")
	if err := s.Compact(ctx, gone); err != nil {
		t.Fatal(err)
	}
	says(first, "more changes than the store remembers")
}

func latest(s storage.Storage) int64 {
	current, _ := s.Revision()
	return current
}
