package listwatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/wire"
	"github.com/flyball-dev/flyball/informer/objects"
)

// discovered is a ListerWatcher that knows a kind, and looks up its resource when it is first used. So an informer can
// be made without a server, and an informer of a custom resource that is not defined yet is simply not synced.
type discovered struct {
	client rest.Interface
	// mapper returns the resource of the kind. nil means the server's discovery.
	mapper meta.RESTMapper
	kind   schema.GroupVersionKind
	// o has everything but the resource.
	o RESTOptions

	mu sync.Mutex
	// read counts the bytes read by all values that found ever had.
	read atomic.Int64
	// found is nil until discovery has succeeded, and again if the server does not know the resource any more.
	found *RESTListerWatcher[objects.Object]
	// name is the resource that was found last.
	name atomic.Pointer[schema.GroupResource]
}

// NewDiscovered returns a ListerWatcher for the objects of a kind. o has everything but the resource, which mapper
// returns when the ListerWatcher is first used. If mapper is nil the server's discovery is asked.
func NewDiscovered(
	client rest.Interface, mapper meta.RESTMapper, kind schema.GroupVersionKind, o RESTOptions,
) ListerWatcher[objects.Object] {
	return &discovered{client: client, mapper: mapper, kind: kind, o: o}
}

// Resource returns the resource that was found last. It takes no lock.
func (d *discovered) Resource() (_ schema.GroupResource, found bool) {
	if name := d.name.Load(); name != nil {
		return *name, true
	}
	return schema.GroupResource{}, false
}

// BytesRead returns the number of decompressed bytes read from the server.
func (d *discovered) BytesRead() int64 { return d.read.Load() }

// List is described at [ListerWatcher].
func (d *discovered) List(ctx context.Context, o ListOptions, yield func(objects.Object) error) (ListResult, error) {
	lw, err := d.resolve(ctx)
	if err != nil {
		return ListResult{}, err
	}
	r, err := lw.List(ctx, o, yield)
	d.forgetIfGone(err)
	return r, err
}

// Watch is described at [ListerWatcher].
func (d *discovered) Watch(ctx context.Context, o WatchOptions) (Watch[objects.Object], error) {
	lw, err := d.resolve(ctx)
	if err != nil {
		return nil, err
	}
	w, err := lw.Watch(ctx, o)
	d.forgetIfGone(err)
	return w, err
}

// forgetIfGone forgets the resource if the server answers that it does not exist.
func (d *discovered) forgetIfGone(err error) {
	if !apierrors.IsNotFound(err) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found = nil
}

// resolve returns the ListerWatcher of the resource. Two callers at once may both ask the server; the answer is the
// same.
func (d *discovered) resolve(ctx context.Context) (*RESTListerWatcher[objects.Object], error) {
	d.mu.Lock()
	known := d.found
	d.mu.Unlock()
	if known != nil {
		return known, nil
	}
	resource, namespaced, err := d.resource(ctx)
	if err != nil {
		return nil, err
	}
	if !namespaced && d.o.Namespace != "" {
		return nil, fmt.Errorf(
			"%s have no namespaces, but namespace %s was asked for: set InformerOptions.ClusterScoped",
			resource.Resource, d.o.Namespace,
		)
	}
	o, name := d.o, resource.GroupResource()
	o.Resource = resource
	d.name.Store(&name)
	lw := NewRESTListerWatcher[objects.Object](d.client, o)
	lw.read = &d.read
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found = lw
	return lw, nil
}

// resource returns the resource of the kind, and whether it has namespaces.
func (d *discovered) resource(ctx context.Context) (_ schema.GroupVersionResource, namespaced bool, err error) {
	kind := d.kind
	if d.mapper != nil {
		m, err := mapping(ctx, d.mapper, kind)
		if err != nil {
			return schema.GroupVersionResource{}, false, fmt.Errorf("discover %s: %w", kind, err)
		}
		return m.Resource, m.Scope.Name() == meta.RESTScopeNameNamespace, nil
	}
	// One request for this group and version is enough.
	path := "/apis/" + kind.GroupVersion().String()
	if kind.Group == "" {
		path = "/api/" + kind.Version
	}
	data, err := d.client.Get().AbsPath(path).SetHeader("Accept",
		wire.JSONMedia).Throttle(nil).MaxRetries(0).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return schema.GroupVersionResource{}, false, &UnknownKindError{Kind: kind, Err: err}
	}
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	var list metav1.APIResourceList
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &list); err != nil {
		return schema.GroupVersionResource{}, false,
			&objects.DecodeError{What: "discovery of " + kind.GroupVersion().String(), Err: err}
	}
	for _, r := range list.APIResources {
		if r.Kind == kind.Kind && !strings.Contains(r.Name, "/") {
			return kind.GroupVersion().WithResource(r.Name), r.Namespaced, nil
		}
	}
	return schema.GroupVersionResource{}, false,
		&UnknownKindError{Kind: kind, Err: errors.New("not in the resource list of the API version")}
}

// mapping calls a mapper. The mapper may ask the server and takes no context, so the call is abandoned when ctx ends.
func mapping(ctx context.Context, mapper meta.RESTMapper, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	type answer struct {
		mapping *meta.RESTMapping
		err     error
	}
	answered := make(chan answer, 1) // Sent to once, by the goroutine. It is buffered in case ctx ends first.
	go func() {
		m, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		answered <- answer{m, err}
	}()
	select {
	case a := <-answered:
		return a.mapping, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// UnknownKindError reports that the server does not serve a kind: a custom resource that is not defined (yet).
type UnknownKindError struct {
	Kind schema.GroupVersionKind
	Err  error
}

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("the server has no kind %s in %s", e.Kind.Kind, e.Kind.GroupVersion())
}

func (e *UnknownKindError) Unwrap() error { return e.Err }
