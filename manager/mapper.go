package manager

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// reloadInterval is the minimum time between two reads of the server's discovery.
const reloadInterval = 5 * time.Second

// reloadingMapper is a REST mapper that reads the server's discovery when it is first used. It reads discovery again
// for a kind or resource that it does not know, because a CustomResourceDefinition may have been added. Two reads are
// at least reloadInterval apart, so that requests for an unknown kind do not flood the server.
type reloadingMapper struct {
	discovery discovery.DiscoveryInterface

	mu sync.Mutex
	// known is the result of the last read; nil before the first.
	known meta.RESTMapper
	// read is when known was read.
	read time.Time
}

var _ meta.ResettableRESTMapper = (*reloadingMapper)(nil)

// Reset makes the next call read the server's discovery again.
func (r *reloadingMapper) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = nil
}

// mapper returns known. If known is nil, mapper reads it first, and renewed is true.
func (r *reloadingMapper) mapper() (known meta.RESTMapper, renewed bool, err error) {
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

// dropIfOld drops known and returns true, unless it was read less than reloadInterval ago.
func (r *reloadingMapper) dropIfOld() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) < reloadInterval {
		return false
	}
	r.known = nil
	return true
}

// lookUp answers a question from known. If known has no match, it reads discovery again and retries once.
func lookUp[T any](r *reloadingMapper, question func(meta.RESTMapper) (T, error)) (T, error) {
	var none T
	known, renewed, err := r.mapper()
	if err != nil {
		return none, err
	}
	answer, err := question(known)
	if renewed || !meta.IsNoMatchError(err) || !r.dropIfOld() {
		return answer, err
	}
	if known, _, err = r.mapper(); err != nil {
		return none, err
	}
	return question(known)
}

// KindFor implements meta.RESTMapper.
func (r *reloadingMapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return lookUp(r, func(known meta.RESTMapper) (schema.GroupVersionKind, error) { return known.KindFor(resource) })
}

// KindsFor implements meta.RESTMapper.
func (r *reloadingMapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return lookUp(r, func(known meta.RESTMapper) ([]schema.GroupVersionKind, error) { return known.KindsFor(resource) })
}

// ResourceFor implements meta.RESTMapper.
func (r *reloadingMapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return lookUp(r,
		func(known meta.RESTMapper) (schema.GroupVersionResource, error) { return known.ResourceFor(input) })
}

// ResourcesFor implements meta.RESTMapper.
func (r *reloadingMapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return lookUp(r,
		func(known meta.RESTMapper) ([]schema.GroupVersionResource, error) { return known.ResourcesFor(input) })
}

// RESTMapping implements meta.RESTMapper.
func (r *reloadingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return lookUp(r,
		func(known meta.RESTMapper) (*meta.RESTMapping, error) { return known.RESTMapping(kind, versions...) })
}

// RESTMappings implements meta.RESTMapper.
func (r *reloadingMapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return lookUp(r, func(known meta.RESTMapper) ([]*meta.RESTMapping, error) {
		return known.RESTMappings(kind, versions...)
	})
}

// GetRESTMapper returns a mapper between kinds and the server's resources. It reads the server's discovery at first
// use, and again for a kind that it does not know, so that CustomResourceDefinitions can be added while the manager
// runs.
func (m *Manager) GetRESTMapper() meta.RESTMapper {
	if m.options.Informers.Mapper != nil {
		return m.options.Informers.Mapper
	}
	return m.mapper
}

// ResourceSingularizer implements meta.RESTMapper.
func (r *reloadingMapper) ResourceSingularizer(resource string) (string, error) {
	return lookUp(r, func(known meta.RESTMapper) (string, error) { return known.ResourceSingularizer(resource) })
}
