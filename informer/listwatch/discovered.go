package listwatch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/objects"
)

// discovered is a ListerWatcher that knows a kind, and looks up its resource when it is first used. So an informer can
// be made without a server, and an informer of a custom resource that is not defined yet is simply not synced.
type discovered struct {
	client    rest.Interface
	resources *Resources
	kind      schema.GroupVersionKind
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

// NewDiscovered returns a ListerWatcher for the objects of a kind. o has everything but the resource, which resources
// returns when the ListerWatcher is first used.
func NewDiscovered(
	client rest.Interface, resources *Resources, kind schema.GroupVersionKind, o RESTOptions,
) ListerWatcher[objects.Object] {
	return &discovered{client: client, resources: resources, kind: kind, o: o}
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
	d.resources.Forget(d.kind)
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
	resource, err := d.resources.Of(ctx, d.kind)
	if err != nil {
		return nil, err
	}
	if !resource.Namespaced && d.o.Namespace != "" {
		return nil, fmt.Errorf(
			"%s have no namespaces, but namespace %s was asked for: set InformerOptions.ClusterScoped",
			resource.Resource, d.o.Namespace,
		)
	}
	o, name := d.o, resource.GroupResource()
	o.Resource = resource.GroupVersionResource
	d.name.Store(&name)
	lw := NewRESTListerWatcher[objects.Object](d.client, o)
	lw.read = &d.read
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found = lw
	return lw, nil
}
