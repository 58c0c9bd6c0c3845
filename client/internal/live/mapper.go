package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	given  meta.RESTMapper // Nil: the server is asked.
	client rest.Interface

	mu    sync.Mutex
	known map[schema.GroupVersionKind]Resource
	// asking has the questions that are under way, one for each group and version.
	asking map[schema.GroupVersion]*question
}

// question is a request for the resources of a group and version. Whoever else needs them waits for its answer.
type question struct {
	answered chan struct{} // Closed when the rest is set.
	found    map[schema.GroupVersionKind]Resource
	err      error
	// ended reports that the context of the caller who asked ended.
	ended bool
}

// Resource is where objects of a kind are found.
type Resource struct {
	schema.GroupVersionResource
	Namespaced bool
}

// Of returns the resource of a kind. It asks the server about one group and version, not the whole of discovery, and
// once or twice however many callers ask at the same time. Failures are not remembered: a custom resource may be
// defined at any time.
func (m *Mapper) Of(ctx context.Context, gvk schema.GroupVersionKind) (Resource, error) {
	for waited := 0; ; waited++ {
		m.mu.Lock()
		r, known := m.known[gvk]
		q, asked := m.asking[gvk.GroupVersion()]
		if !known && !asked && m.given == nil {
			q = &question{answered: make(chan struct{})}
			m.asking[gvk.GroupVersion()] = q
		}
		m.mu.Unlock()
		switch {
		case known:
			return r, nil
		case m.given != nil:
			return m.mapped(gvk)
		case !asked:
			m.ask(ctx, q, gvk.GroupVersion())
		default:
			select {
			case <-q.answered:
			case <-ctx.Done():
				return Resource{}, fmt.Errorf("find the resource of %s: %w", gvk, context.Cause(ctx))
			}
			if _, found := q.found[gvk]; q.ended || !found && waited == 0 {
				continue // The first question that it waits for may be from before the kind was defined.
			}
		}
		if q.err != nil {
			return Resource{}, fmt.Errorf("find the resource of %s: %w", gvk, q.err)
		}
		if r, known = q.found[gvk]; !known {
			return Resource{},
				&listwatch.UnknownKindError{Kind: gvk, Err: errors.New("not in the resource list of the API version")}
		}
		return r, nil
	}
}

// mapped asks the given mapper.
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

// errPanicked is the answer to a question whose transport panicked.
var errPanicked = errors.New("the request for it panicked")

// ask answers a question, and remembers what was found.
func (m *Mapper) ask(ctx context.Context, q *question, gv schema.GroupVersion) {
	q.err = errPanicked
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		maps.Copy(m.known, q.found)
		delete(m.asking, gv)
		close(q.answered)
	}()
	q.found, q.err = m.discover(ctx, gv)
	q.ended = q.err != nil && ctx.Err() != nil
}

func (m *Mapper) discover(ctx context.Context, gv schema.GroupVersion) (map[schema.GroupVersionKind]Resource, error) {
	_, data, err := answer(ctx, m.client.Get().AbsPath(apiPath(gv)), nil)
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := kinds.DecodeJSON(data, &list); err != nil {
		return nil, err
	}
	found := map[schema.GroupVersionKind]Resource{}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			found[gv.WithKind(r.Kind)] = Resource{gv.WithResource(r.Name), r.Namespaced}
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
