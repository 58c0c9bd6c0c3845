package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Key is the address of an object in a store. Every backend uses the same layout:
//
//	<tenant>/<group>/<resource>/<namespace>/<name>   for namespaced resources
//	<tenant>/<group>/<resource>/<name>               for cluster-scoped ones
//
// The empty group is written as "core". The version is not part of the key, because the versions of a type are views of
// one object. No part is empty or contains a slash. So every prefix that ends with a slash selects exactly one tenant,
// resource or namespace, and never a sibling whose name begins alike. Sorting by key gives the order of a
// kube-apiserver's lists.
type Key struct {
	Tenant    string
	Group     string
	Resource  string
	Namespace string // "" for cluster-scoped resources
	Name      string
}

const coreGroup = "core"

// String returns the key as a store holds it.
func (k Key) String() string {
	return k.Prefix() + k.Name
}

// Prefix returns the common prefix of the keys of all objects of the resource. If the key has a namespace, it is that
// of the objects in the namespace.
func (k Key) Prefix() string {
	group := cmp.Or(k.Group, coreGroup)
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
	if slices.Contains(parts, "") {
		return Key{}, fmt.Errorf("parse key %q: empty part", s)
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

// TenantPrefix returns the common prefix of all keys of a tenant.
func TenantPrefix(tenant string) string { return tenant + "/" }

// ValidateTenant returns an error unless the name can be part of a key. It must be a DNS label, as a namespace must.
func ValidateTenant(tenant string) error {
	if problems := validation.IsDNS1123Label(tenant); len(problems) > 0 {
		return fmt.Errorf("tenant %q: %s", tenant, strings.Join(problems, "; "))
	}
	return nil
}
