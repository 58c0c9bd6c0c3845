package storage_test

import (
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/localapi/storage"
)

func TestKeyLayout(t *testing.T) {
	for _, c := range []struct {
		key  storage.Key
		want string
	}{
		{storage.Key{Tenant: "t", Resource: "pods", Namespace: "ns", Name: "a"}, "t/core/pods/ns/a"},
		{storage.Key{Tenant: "t", Resource: "nodes", Name: "n"}, "t/core/nodes/n"},
		{
			storage.Key{Tenant: "t", Group: "apps", Resource: "deployments", Namespace: "ns", Name: "a"},
			"t/apps/deployments/ns/a",
		},
	} {
		if got := c.key.String(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.key, got, c.want)
		}
		back, err := storage.ParseKey(c.want)
		if err != nil || back != c.key {
			t.Errorf("ParseKey(%q) = %+v, %v; want %+v", c.want, back, err, c.key)
		}
		if !strings.HasPrefix(c.want, c.key.Prefix()) || !strings.HasSuffix(c.key.Prefix(), "/") {
			t.Errorf("prefix of %q is %q", c.want, c.key.Prefix())
		}
	}
	for _, bad := range []string{"", "a", "a/b/c", "a//b/c", "a/b/c/d/e/f", "/a/b/c"} {
		if k, err := storage.ParseKey(bad); err == nil {
			t.Errorf("ParseKey(%q) = %+v, want an error", bad, k)
		}
	}
}

func TestTenantNames(t *testing.T) {
	for _, good := range []string{"a", "ab", "a-b", "team1"} {
		if err := storage.ValidateTenant(good); err != nil {
			t.Errorf("tenant %q refused: %v", good, err)
		}
	}
	for _, bad := range []string{"", "a/b", "../a", "A", "a_b", "a\x00", strings.Repeat("a", 64)} {
		if storage.ValidateTenant(bad) == nil {
			t.Errorf("tenant %q accepted", bad)
		}
	}
	if strings.HasPrefix(storage.TenantPrefix("ab"), storage.TenantPrefix("a")) {
		t.Error("tenant ab is in tenant a")
	}
}
