package discovered

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/wire"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
)

// Resources finds the resources of kinds and remembers them.
//
// Concurrency: all methods may be called from any goroutine.
type Resources struct {
	client rest.Interface
	given  meta.RESTMapper // Nil means discovery.

	mu    sync.Mutex
	known map[schema.GroupVersionKind]Resource
	// requests are the discovery requests that are under way. Invariant: at most one for each group and version.
	requests map[schema.GroupVersion]*discovery
}

// Resource is the resource of a kind.
type Resource struct {
	schema.GroupVersionResource
	Namespaced bool
	// Unlisted is set if discovery names the verbs of the resource and list is not among them: a Binding can only be
	// created.
	Unlisted bool
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

// NewResources returns a Resources that asks mapper or, if mapper is nil, the server's discovery.
func NewResources(client rest.Interface, mapper meta.RESTMapper) *Resources {
	return &Resources{
		client: client, given: mapper, known: map[schema.GroupVersionKind]Resource{},
		requests: map[schema.GroupVersion]*discovery{},
	}
}

// Of returns the resource of a kind. It asks the server about one group and version, not the whole of discovery.
// However many callers ask at the same time, at most two requests are sent. Failures are not remembered: a custom
// resource may be defined at any time.
//
// Errors: [listwatch.UnknownKindError]; those of the request, which is not repeated; those of the mapper.
func (r *Resources) Of(ctx context.Context, kind schema.GroupVersionKind) (Resource, error) {
	for waited := 0; ; waited++ {
		r.mu.Lock()
		known, is := r.known[kind]
		d, sent := r.requests[kind.GroupVersion()]
		if !is && !sent && r.given == nil {
			d = &discovery{done: make(chan struct{})}
			r.requests[kind.GroupVersion()] = d
		}
		r.mu.Unlock()
		switch {
		case is:
			return known, nil
		case r.given != nil:
			return r.mapped(ctx, kind)
		case !sent:
			r.discover(ctx, d, kind.GroupVersion())
		default:
			select {
			case <-d.done:
			case <-ctx.Done():
				return Resource{}, fmt.Errorf("find the resource of %s: %w", kind, context.Cause(ctx))
			}
			// The first request that the caller waits for may have been sent before the kind was defined.
			if _, found := d.found[kind]; d.cancelled || !found && waited == 0 {
				continue
			}
		}
		if apierrors.IsNotFound(d.err) {
			return Resource{}, &listwatch.UnknownKindError{Kind: kind, Err: d.err}
		}
		if d.err != nil {
			return Resource{}, fmt.Errorf("find the resource of %s: %w", kind, d.err)
		}
		found, is := d.found[kind]
		if !is {
			return Resource{},
				&listwatch.UnknownKindError{Kind: kind, Err: errors.New("not in the resource list of the API version")}
		}
		return found, nil
	}
}

// Forget makes the next call of Of for that kind ask again: the server does not serve the resource any more.
func (r *Resources) Forget(kind schema.GroupVersionKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, kind)
}

// mapped returns the resource that the given mapper has for a kind. The mapper may ask the server and takes no context,
// so the call is abandoned when ctx ends.
func (r *Resources) mapped(ctx context.Context, kind schema.GroupVersionKind) (Resource, error) {
	type answer struct {
		mapping *meta.RESTMapping
		err     error
	}
	answered := make(chan answer, 1) // Sent to once, by the goroutine. It is buffered in case ctx ends first.
	go func() {
		m, err := r.given.RESTMapping(kind.GroupKind(), kind.Version)
		answered <- answer{m, err}
	}()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		a.err = context.Cause(ctx)
	}
	if a.err != nil {
		return Resource{}, fmt.Errorf("find the resource of %s: %w", kind, a.err)
	}
	found := Resource{
		GroupVersionResource: a.mapping.Resource, Namespaced: a.mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[kind] = found
	return found, nil
}

// errPanicked is the error of a discovery whose transport panicked.
var errPanicked = errors.New("the request for it panicked")

// discover sends d and remembers what it found.
func (r *Resources) discover(ctx context.Context, d *discovery, gv schema.GroupVersion) {
	d.err = errPanicked
	defer func() { // Also after a panic: others wait for d.
		r.mu.Lock()
		defer r.mu.Unlock()
		maps.Copy(r.known, d.found)
		delete(r.requests, gv)
		close(d.done)
	}()
	d.found, d.err = r.ask(ctx, gv)
	d.cancelled = d.err != nil && ctx.Err() != nil
}

// ask asks the server for the resources of a group and version.
func (r *Resources) ask(ctx context.Context, gv schema.GroupVersion) (map[schema.GroupVersionKind]Resource, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	answer := r.client.Get().AbsPath(path).SetHeader("Accept", wire.JSONMedia).Throttle(nil).MaxRetries(0).Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, err // Raw's error does not have the server's text.
	}
	data, _ := answer.Raw()
	var list metav1.APIResourceList
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &list); err != nil {
		return nil, &objects.DecodeError{What: "discovery of " + gv.String(), Err: err}
	}
	found := map[schema.GroupVersionKind]Resource{}
	for _, of := range list.APIResources {
		if !strings.Contains(of.Name, "/") { // Not a subresource.
			unlisted := len(of.Verbs) > 0 && !slices.Contains(of.Verbs, "list")
			found[gv.WithKind(of.Kind)] = Resource{gv.WithResource(of.Name), of.Namespaced, unlisted}
		}
	}
	return found, nil
}
