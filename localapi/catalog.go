package localapi

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/crd"
	"github.com/flyball-dev/flyball/localapi/internal/discovery"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
)

// catalog holds the types that a server serves at one moment. It is immutable.
type catalog struct {
	resources map[schema.GroupVersionResource]*registry.Resource
	discovery *discovery.Handler
}

// with returns the catalog extended by more types. A type that is already in the catalog wins over a new one.
func (c *catalog) with(more []*registry.Resource) *catalog {
	all := maps.Clone(c.resources)
	var definitions []*resource.Definition
	for _, r := range more {
		gvr := r.Definition.GroupVersionResource()
		if all[gvr] == nil {
			all[gvr] = r
			definitions = append(definitions, r.Definition)
		}
	}
	return &catalog{resources: all, discovery: c.discovery.With(definitions)}
}

// serveFixed makes the server serve the types that it was created with.
func (s *Server) serveFixed(definitions []*resource.Definition) {
	c := &catalog{
		resources: make(map[schema.GroupVersionResource]*registry.Resource, len(definitions)),
		discovery: discovery.New(definitions, s.env.Codec),
	}
	for _, d := range definitions {
		r := registry.NewResource(s.env, d)
		c.resources[d.GroupVersionResource()] = r
		switch d.GroupVersionKind() {
		case corev1.SchemeGroupVersion.WithKind("Namespace"):
			s.env.Namespaces = r
		case crd.Kind:
			s.custom = newCustomTypes(s, r, c)
		}
	}
	for _, r := range c.resources {
		c.tellFamily(r)
	}
	s.served.Store(c)
}

// tellFamily wakes the watchers of the other kinds in r's family when r is written to.
func (c *catalog) tellFamily(r *registry.Resource) {
	if r.Definition.Family == nil {
		return
	}
	var others []*registry.Resource
	for _, m := range r.Definition.Family.Members {
		other := c.resources[m.Kind.GroupVersion().WithResource(r.Definition.Plural)]
		if other != nil && other != r {
			others = append(others, other)
		}
	}
	r.Changed = func(context.Context, *watchcache.Object, bool) {
		for _, other := range others {
			_ = other.Objects.SyncIfUsed() // readers get the error themselves
		}
	}
}
