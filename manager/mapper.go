package manager

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// reloadInterval is the least time between two readings of the server's discovery.
const reloadInterval = 5 * time.Second

// reloading is a REST mapper that reads the server's discovery when it is first asked, and again when it is asked for a kind or
// resource that it does not know: a CustomResourceDefinition may have come. A question that nobody can answer does not flood
// the server: it is read again only after reloadInterval.
type reloading struct {
	discovery discovery.DiscoveryInterface

	mu sync.Mutex
	// known is what was read; nil before that.
	known meta.RESTMapper
	// read is when known was read.
	read time.Time
}

var _ meta.ResettableRESTMapper = (*reloading)(nil)

// Reset makes the next question read the server's discovery anew.
func (r *reloading) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = nil
}

// mapper returns what is known, having read it if nothing is. renewed says that this was just now.
func (r *reloading) mapper() (known meta.RESTMapper, renewed bool, err error) {
	r.mu.Lock()
	known = r.known
	r.mu.Unlock()
	if known != nil {
		return known, false, nil
	}
	groups, err := restmapper.GetAPIGroupResources(r.discovery) // a request, so not under the lock
	if err != nil {
		return nil, false, fmt.Errorf("read the API server's discovery: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.read = restmapper.NewDiscoveryRESTMapper(groups), time.Now()
	return r.known, true, nil
}

// outdated forgets what is known, if it was not read a moment ago.
func (r *reloading) outdated() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) < reloadInterval {
		return false
	}
	r.known = nil
	return true
}

// asked asks what is known, and if that has no answer what the server says now.
func asked[T any](r *reloading, question func(meta.RESTMapper) (T, error)) (T, error) {
	var none T
	known, renewed, err := r.mapper()
	if err != nil {
		return none, err
	}
	answer, err := question(known)
	if renewed || !meta.IsNoMatchError(err) || !r.outdated() {
		return answer, err
	}
	if known, _, err = r.mapper(); err != nil {
		return none, err
	}
	return question(known)
}

// KindFor implements meta.RESTMapper.
func (r *reloading) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return asked(r, func(known meta.RESTMapper) (schema.GroupVersionKind, error) { return known.KindFor(resource) })
}

// KindsFor implements meta.RESTMapper.
func (r *reloading) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return asked(r, func(known meta.RESTMapper) ([]schema.GroupVersionKind, error) { return known.KindsFor(resource) })
}

// ResourceFor implements meta.RESTMapper.
func (r *reloading) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return asked(r, func(known meta.RESTMapper) (schema.GroupVersionResource, error) { return known.ResourceFor(input) })
}

// ResourcesFor implements meta.RESTMapper.
func (r *reloading) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return asked(r, func(known meta.RESTMapper) ([]schema.GroupVersionResource, error) { return known.ResourcesFor(input) })
}

// RESTMapping implements meta.RESTMapper.
func (r *reloading) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return asked(r, func(known meta.RESTMapper) (*meta.RESTMapping, error) { return known.RESTMapping(kind, versions...) })
}

// RESTMappings implements meta.RESTMapper.
func (r *reloading) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return asked(r, func(known meta.RESTMapper) ([]*meta.RESTMapping, error) {
		return known.RESTMappings(kind, versions...)
	})
}

// errNoScope is what IsNamespaced returns for a mapping without one.
var errNoScope = errors.New("the server does not say whether the kind has namespaces")

// RESTMapper tells the resources of kinds, as the server has them at the time: one that it did not know is looked for again, so
// that CustomResourceDefinitions may come while the manager runs. It asks the server when it is first used.
func (m *Manager) RESTMapper() meta.RESTMapper {
	if m.options.Informers.Mapper != nil {
		return m.options.Informers.Mapper
	}
	return m.mapper
}

// IsNamespaced asks the RESTMapper whether objects of that kind live in namespaces.
func (m *Manager) IsNamespaced(kind schema.GroupKind) (bool, error) {
	mapping, err := m.RESTMapper().RESTMapping(kind)
	if err != nil {
		return false, err
	}
	if mapping.Scope == nil {
		return false, errNoScope
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// ResourceSingularizer implements meta.RESTMapper.
func (r *reloading) ResourceSingularizer(resource string) (string, error) {
	return asked(r, func(known meta.RESTMapper) (string, error) { return known.ResourceSingularizer(resource) })
}
