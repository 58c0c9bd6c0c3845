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
	// known is the result of the last read that succeeded; nil before the first, and after Reset.
	known meta.RESTMapper
	// read is when known was read.
	read time.Time
	// reading is the read that is under way; nil if there is none.
	reading *discoveryRead
}

// discoveryRead is one read of the server's discovery. One caller sends the requests; the others wait for it.
type discoveryRead struct {
	done  chan struct{} // closed by the sender when the other fields are set
	known meta.RESTMapper
	err   error
}

var _ meta.ResettableRESTMapper = (*reloadingMapper)(nil)

// Reset makes the next call read the server's discovery again.
func (r *reloadingMapper) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = nil
}

// last returns the result of the last read, and when that was.
func (r *reloadingMapper) last() (known meta.RESTMapper, read time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known, r.read
}

// reload reads the server's discovery, unless it was read after the time seen. If a read is under way, it waits for
// that.
func (r *reloadingMapper) reload(seen time.Time) (meta.RESTMapper, error) {
	r.mu.Lock()
	d := r.reading
	switch {
	case r.known != nil && r.read.After(seen):
		defer r.mu.Unlock()
		return r.known, nil
	case d != nil:
		r.mu.Unlock()
		<-d.done
		return d.known, d.err
	}
	d = &discoveryRead{done: make(chan struct{})}
	r.reading = d
	r.mu.Unlock()
	groups, err := restmapper.GetAPIGroupResources(r.discovery) // a request, so not under the lock
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		d.err = fmt.Errorf("read the API server's discovery: %w", err)
	} else {
		d.known = restmapper.NewDiscoveryRESTMapper(groups)
		r.known, r.read = d.known, time.Now()
	}
	r.reading = nil
	close(d.done)
	return d.known, d.err
}

// lookUp answers a question from the last read. If that has no match and is old, lookUp reads discovery again and
// retries once.
func lookUp[T any](r *reloadingMapper, question func(meta.RESTMapper) (T, error)) (answer T, err error) {
	known, read := r.last()
	if known != nil {
		answer, err = question(known)
		if !meta.IsNoMatchError(err) || time.Since(read) < reloadInterval {
			return answer, err
		}
	}
	if known, err = r.reload(read); err != nil {
		return answer, err
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

// ResourceSingularizer implements meta.RESTMapper.
func (r *reloadingMapper) ResourceSingularizer(resource string) (string, error) {
	return lookUp(r, func(known meta.RESTMapper) (string, error) { return known.ResourceSingularizer(resource) })
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
