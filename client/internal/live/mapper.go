package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// Mapper finds the resources of kinds, and remembers them.
type Mapper struct {
	given  meta.RESTMapper // nil asks the server
	client rest.Interface

	mu    sync.Mutex
	known map[schema.GroupVersionKind]Resource
}

// Resource is where objects of a kind are found.
type Resource struct {
	schema.GroupVersionResource
	Namespaced bool
}

// Of returns the resource of a kind. It asks the server about one group and version, not the whole of discovery.
// Failures are not remembered: a custom resource may be defined at any time.
func (m *Mapper) Of(ctx context.Context, gvk schema.GroupVersionKind) (Resource, error) {
	m.mu.Lock()
	r, known := m.known[gvk]
	m.mu.Unlock()
	if known {
		return r, nil
	}
	found, err := m.discover(ctx, gvk)
	if err != nil {
		return Resource{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for kind, r := range found {
		m.known[kind] = r
	}
	if r, known = found[gvk]; !known {
		return Resource{},
			&listwatch.UnknownKindError{Kind: gvk, Err: errors.New("not in the list of the version's resources")}
	}
	return r, nil
}

func (m *Mapper) discover(ctx context.Context,
	gvk schema.GroupVersionKind,
) (map[schema.GroupVersionKind]Resource, error) {
	if m.given != nil {
		mapping, err := m.given.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, fmt.Errorf("find the resource of %s: %w", gvk, err)
		}
		return map[schema.GroupVersionKind]Resource{
			gvk: {mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace},
		}, nil
	}
	_, data, err := Answer(ctx, m.client.Get().AbsPath(apiPath(gvk.GroupVersion())), nil)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	var list metav1.APIResourceList
	if err := kinds.DecodeJSON(data, &list); err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	found := map[schema.GroupVersionKind]Resource{}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			found[gvk.GroupVersion().WithKind(r.Kind)] = Resource{gvk.GroupVersion().WithResource(r.Name), r.Namespaced}
		}
	}
	return found, nil
}

// apiPath is where the resources of a version are.
func apiPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}
