package storage

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Key is the address of an object in a store. The one layout, for every backend, is
//
//	<tenant>/<group>/<resource>/<namespace>/<name>   for namespaced resources
//	<tenant>/<group>/<resource>/<name>               for cluster-scoped ones
//
// with "core" for the empty group. Versions are not part of it: the versions of a type are views of one object. No part
// is empty or contains a slash, so every prefix that ends with a slash selects exactly one tenant, resource or
// namespace, and never a sibling whose name begins alike. Sorted by key is sorted as a kube-apiserver sorts its lists.
type Key struct {
	Tenant    string
	Group     string
	Resource  string
	Namespace string // "" for cluster-scoped resources
	Name      string
}

const coreGroup = "core"

// String is the key in a store.
func (k Key) String() string {
	return k.Prefix() + k.Name
}

// Prefix is what the keys of all objects of the resource begin with; of those in the namespace, if the key has one.
func (k Key) Prefix() string {
	group := k.Group
	if group == "" {
		group = coreGroup
	}
	prefix := k.Tenant + "/" + group + "/" + k.Resource + "/"
	if k.Namespace != "" {
		prefix += k.Namespace + "/"
	}
	return prefix
}

// ParseKey is the inverse of [Key.String].
func ParseKey(s string) (Key, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 && len(parts) != 5 {
		return Key{}, fmt.Errorf("parse key %q: want 4 or 5 parts, have %d", s, len(parts))
	}
	for _, p := range parts {
		if p == "" {
			return Key{}, fmt.Errorf("parse key %q: empty part", s)
		}
	}
	k := Key{Tenant: parts[0], Group: parts[1], Resource: parts[2], Name: parts[len(parts)-1]}
	if k.Group == coreGroup {
		k.Group = ""
	}
	if len(parts) == 5 {
		k.Namespace = parts[3]
	}
	return k, nil
}

// TenantPrefix is what all keys of a tenant begin with.
func TenantPrefix(tenant string) string { return tenant + "/" }

// ValidateTenant says whether a tenant's name can be part of a key: it must be a DNS label, as a namespace is.
func ValidateTenant(tenant string) error {
	if problems := validation.IsDNS1123Label(tenant); len(problems) > 0 {
		return fmt.Errorf("tenant %q: %s", tenant, strings.Join(problems, "; "))
	}
	return nil
}
