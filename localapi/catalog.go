package localapi

import (
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/localapi/internal/builtin"
	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/crd"
	"github.com/flyball-dev/flyball/localapi/internal/customresource"
	"github.com/flyball-dev/flyball/localapi/internal/discovery"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/schemas"
	"github.com/flyball-dev/flyball/localapi/internal/tokens"
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

// newScheme registers the Go types of the definitions, and the kinds that every API group has.
func newScheme(definitions []*resource.Definition) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register meta types: %w", err)
	}
	v1 := schema.GroupVersion{Version: "v1"}
	scheme.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{},
		&metav1.APIResourceList{})
	for _, d := range definitions {
		if codec.IsUnstructured(d.New()) {
			continue
		}
		scheme.AddKnownTypeWithName(d.GroupVersionKind(), d.New())
		if d.Review == nil {
			scheme.AddKnownTypeWithName(d.ListGroupVersionKind(), d.NewList())
		}
		for _, sub := range d.Subresources {
			if sub.New != nil {
				scheme.AddKnownTypeWithName(sub.Kind, sub.New())
			}
		}
	}
	return scheme, nil
}

var (
	builtInOnce sync.Once // guards the making of the two below
	builtIn     *runtime.Scheme
	errBuiltIn  error
)

// builtInScheme is newScheme for the definitions that servers have by default. They differ between servers in what they
// do, but have the same types, and nobody changes a server's scheme. So all servers of the process share it.
func builtInScheme(definitions []*resource.Definition) (*runtime.Scheme, error) {
	builtInOnce.Do(func() { builtIn, errBuiltIn = newScheme(definitions) })
	return builtIn, errBuiltIn
}

// builtInTypes converts the built-in types. All servers of the process share the schemas that it has parsed.
var builtInTypes = schemas.NewConverter(clientscheme.Scheme)

// defaultDefinitions returns the types that a server serves by default. issuer issues the tokens of service accounts.
// cel evaluates expressions, if it is not nil.
func defaultDefinitions(issuer *tokens.Issuer, cel expressions.Evaluator) []*resource.Definition {
	services, err := customresource.APIServices()
	if err != nil { // impossible: the schema is compiled in
		panic(err)
	}
	all := append(builtin.All(), crd.Definition(cel), services)
	builtin.Evaluate(all, cel)
	for _, d := range all {
		if d.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("ServiceAccount") {
			d.Subresources = map[string]resource.Subresource{"token": issuer.Subresource()}
		}
	}
	return all
}
