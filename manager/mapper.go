package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"
)

// reloadInterval is the minimum time between two reads of the server's discovery.
const reloadInterval = 5 * time.Second

// reloading is a REST mapper that reads the server's discovery when it is first used. It reads it again when it is
// asked for a kind or resource that it does not know, because a CustomResourceDefinition may have been added. It waits
// at least reloadInterval between two reads, so that requests for an unknown kind do not flood the server.
type reloading struct {
	discovery discovery.DiscoveryInterface

	mu sync.Mutex
	// known is the result of the last read; nil before the first.
	known meta.RESTMapper
	// read is when known was read.
	read time.Time
}

var _ meta.ResettableRESTMapper = (*reloading)(nil)

// Reset makes the next call read the server's discovery again.
func (r *reloading) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = nil
}

// mapper returns known, which it reads first if it is nil. renewed reports whether it did.
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

// outdated drops known and returns true, unless it was read less than reloadInterval ago.
func (r *reloading) outdated() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) < reloadInterval {
		return false
	}
	r.known = nil
	return true
}

// asked answers question from what is known. If that has no match, it reads discovery again and retries once.
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
	return asked(r,
		func(known meta.RESTMapper) (schema.GroupVersionResource, error) { return known.ResourceFor(input) })
}

// ResourcesFor implements meta.RESTMapper.
func (r *reloading) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return asked(r,
		func(known meta.RESTMapper) ([]schema.GroupVersionResource, error) { return known.ResourcesFor(input) })
}

// RESTMapping implements meta.RESTMapper.
func (r *reloading) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return asked(r,
		func(known meta.RESTMapper) (*meta.RESTMapping, error) { return known.RESTMapping(kind, versions...) })
}

// RESTMappings implements meta.RESTMapper.
func (r *reloading) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return asked(r, func(known meta.RESTMapper) ([]*meta.RESTMapping, error) {
		return known.RESTMappings(kind, versions...)
	})
}

// errNoScope is the error of IsNamespaced for a mapping without a scope.
var errNoScope = errors.New("discovery does not tell whether the kind is namespaced")

// GetRESTMapper returns a mapper between kinds and the server's resources. It reads the server's discovery at first
// use, and again for a kind that it does not know, so that CustomResourceDefinitions can be added while the manager
// runs.
func (m *Manager) GetRESTMapper() meta.RESTMapper {
	if m.options.Informers.Mapper != nil {
		return m.options.Informers.Mapper
	}
	return m.mapper
}

// IsNamespaced reports whether objects of that kind live in namespaces. It asks the RESTMapper.
func (m *Manager) IsNamespaced(kind schema.GroupKind) (bool, error) {
	mapping, err := m.GetRESTMapper().RESTMapping(kind)
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

const (
	reachInterval = time.Second     // between two requests
	reachTimeout  = 5 * time.Second // for one response
)

// awaitServer waits until the API server answers, for at most Options.ServerTimeout. Any response of an API server will
// do, except one that rejects the credentials.
//
// Errors: one line that describes the problem. The error is nil if ctx ended.
func (m *Manager) awaitServer(ctx context.Context) error {
	if m.options.ServerTimeout < 0 {
		return nil
	}
	patience, cancel := context.WithTimeout(ctx, m.options.ServerTimeout)
	defer cancel()
	for first := true; ; first = false {
		err := m.askServer(patience)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if patience.Err() == nil {
			m.state.note(err)
			if first {
				klog.FromContext(ctx).Info("Waiting for the API server", "err", err, "timeout", m.options.ServerTimeout)
			}
		} else if _, last := m.state.get(); last != nil {
			return last // not the error of the request that the timeout cut short
		} else {
			return err
		}
		pause := time.NewTimer(reachInterval)
		select {
		case <-pause.C:
		case <-patience.Done():
		}
		pause.Stop()
	}
}

// askServer requests the server's version, which every user may read.
func (m *Manager) askServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	err := m.discovery.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s rejects the credentials: %w", m.server(), err)
	case errors.As(err, &status) && status.Status().Code == http.StatusBadRequest:
		return fmt.Errorf("%s does not answer as an API server: %s", m.server(), said(status.Status()))
	case errors.As(err, &status) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsInternalError(err):
		return nil // the server is there; a forbidden request is reported where it matters
	}
	return &unreachableError{Server: m.server(), Err: err}
}

// said returns the text of a response that is not a Status, for example "Client sent an HTTP request to an HTTPS
// server."
func said(s metav1.Status) string {
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			if cause.Type == metav1.CauseTypeUnexpectedServerResponse && cause.Message != "" {
				return cause.Message
			}
		}
	}
	return s.Message
}

// server returns the address in the config as a URL.
func (m *Manager) server() string {
	if base, _, err := rest.DefaultServerUrlFor(m.config); err == nil {
		return base.Scheme + "://" + base.Host
	}
	return m.config.Host
}

// unreachableError is the error of an API server that did not answer.
type unreachableError struct {
	Server string // scheme and host
	Err    error
}

// Error returns one line without the request's path and the layers below, for example "cannot reach
// https://10.0.0.1:6443: connection refused".
func (e *unreachableError) Error() string {
	return fmt.Sprintf("cannot reach %s: %s", e.Server, reason(e.Err))
}

// Unwrap returns the transport's error.
func (e *unreachableError) Unwrap() error { return e.Err }

func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	if unreachable := (*url.Error)(nil); errors.As(err, &unreachable) {
		err = unreachable.Err
	}
	if op := (*net.OpError)(nil); !errors.As(err, &op) {
		return err.Error() // for example of TLS, which is clear by itself
	}
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}
