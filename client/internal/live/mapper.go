package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// Mapper finds the resources of kinds and remembers them.
type Mapper struct {
	given      meta.RESTMapper // Nil means discovery.
	connection *connection

	mu    sync.Mutex
	known map[schema.GroupVersionKind]Resource
	// requests are the discovery requests that are under way. Invariant: at most one for each group and version.
	requests map[schema.GroupVersion]*discovery
}

// discovery is a request for the resources of a group and version. One caller sends it; other callers that need the
// same group and version wait for it.
type discovery struct {
	done  chan struct{} // Closed by the sender when the other fields are set.
	found map[schema.GroupVersionKind]Resource
	err   error
	// cancelled reports whether the request failed because the sender's context ended. Such a failure shows nothing
	// about the server, so the waiting callers try again.
	cancelled bool
}

// Resource is the resource of a kind.
type Resource struct {
	schema.GroupVersionResource
	Namespaced bool
}

// Of returns the resource of a kind. It asks the server about one group and version, not the whole of discovery.
// However many callers ask at the same time, at most two requests are sent. Failures are not remembered: a custom
// resource may be defined at any time.
func (m *Mapper) Of(ctx context.Context, gvk schema.GroupVersionKind) (Resource, error) {
	for waited := 0; ; waited++ {
		m.mu.Lock()
		r, known := m.known[gvk]
		d, sent := m.requests[gvk.GroupVersion()]
		if !known && !sent && m.given == nil {
			d = &discovery{done: make(chan struct{})}
			m.requests[gvk.GroupVersion()] = d
		}
		m.mu.Unlock()
		switch {
		case known:
			return r, nil
		case m.given != nil:
			return m.mapped(gvk)
		case !sent:
			m.discover(ctx, d, gvk.GroupVersion())
		default:
			select {
			case <-d.done:
			case <-ctx.Done():
				return Resource{}, fmt.Errorf("find the resource of %s: %w", gvk, context.Cause(ctx))
			}
			// The first request that the caller waits for may have been sent before the kind was defined.
			if _, found := d.found[gvk]; d.cancelled || !found && waited == 0 {
				continue
			}
		}
		if d.err != nil {
			return Resource{}, fmt.Errorf("find the resource of %s: %w", gvk, d.err)
		}
		if r, known = d.found[gvk]; !known {
			return Resource{},
				&listwatch.UnknownKindError{Kind: gvk, Err: errors.New("not in the resource list of the API version")}
		}
		return r, nil
	}
}

// mapped returns the resource that the given mapper has for a kind.
func (m *Mapper) mapped(gvk schema.GroupVersionKind) (Resource, error) {
	mapping, err := m.given.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return Resource{}, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	r := Resource{mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[gvk] = r
	return r, nil
}

// errPanicked is the error of a discovery whose transport panicked.
var errPanicked = errors.New("the request for it panicked")

// discover sends d and remembers what it found.
func (m *Mapper) discover(ctx context.Context, d *discovery, gv schema.GroupVersion) {
	d.err = errPanicked
	defer func() { // Also after a panic: others wait for d.
		m.mu.Lock()
		defer m.mu.Unlock()
		maps.Copy(m.known, d.found)
		delete(m.requests, gv)
		close(d.done)
	}()
	d.found, d.err = m.resources(ctx, gv)
	d.cancelled = d.err != nil && ctx.Err() != nil
}

// resources asks the server for the resources of a group and version.
func (m *Mapper) resources(ctx context.Context, gv schema.GroupVersion) (map[schema.GroupVersionKind]Resource, error) {
	_, data, err := m.connection.do(ctx, &Request{Verb: http.MethodGet, resource: Resource{
		GroupVersionResource: gv.WithResource(""),
	}})
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := kinds.DecodeJSON(data, &list); err != nil {
		return nil, err
	}
	found := map[schema.GroupVersionKind]Resource{}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") { // Not a subresource.
			found[gv.WithKind(r.Kind)] = Resource{gv.WithResource(r.Name), r.Namespaced}
		}
	}
	return found, nil
}

func apiPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}
