package discovered

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
)

// ListerWatcher is a [listwatch.ListerWatcher] that knows a kind, and looks up its resource when it is first used. So
// an informer can be made without a server, and an informer of a custom resource that is not defined yet is simply not
// synced.
type ListerWatcher struct {
	client    rest.Interface
	resources *Resources
	kind      schema.GroupVersionKind
	// o has everything but the resource.
	o listwatch.RESTOptions

	mu sync.Mutex
	// found is nil until discovery has succeeded. It is replaced when the kind has another resource.
	found    *listwatch.RESTListerWatcher[objects.Object]
	resource Resource // of found
	read     int64    // the bytes that the values which found had before have read
}

// New returns a ListerWatcher for the objects of a kind. o has everything but the resource, which resources returns
// when the ListerWatcher is first used.
func New(
	client rest.Interface, resources *Resources, kind schema.GroupVersionKind, o listwatch.RESTOptions,
) *ListerWatcher {
	return &ListerWatcher{client: client, resources: resources, kind: kind, o: o}
}

// Resource returns the resource that was found last. It waits for no request.
func (d *ListerWatcher) Resource() (_ schema.GroupResource, found bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.resource.GroupResource(), d.found != nil
}

// BytesRead returns the number of decompressed bytes read from the server.
func (d *ListerWatcher) BytesRead() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found == nil {
		return 0
	}
	return d.read + d.found.BytesRead()
}

// List is described at [listwatch.ListerWatcher].
func (d *ListerWatcher) List(ctx context.Context, o listwatch.ListOptions, yield func(objects.Object) error,
) (listwatch.ListResult, error) {
	lw, err := d.resolve(ctx)
	if err != nil {
		return listwatch.ListResult{}, err
	}
	r, err := lw.List(ctx, o, yield)
	d.forgetIfGone(err)
	return r, err
}

// Watch is described at [listwatch.ListerWatcher].
func (d *ListerWatcher) Watch(ctx context.Context, o listwatch.WatchOptions) (listwatch.Watch[objects.Object], error) {
	lw, err := d.resolve(ctx)
	if err != nil {
		return nil, err
	}
	w, err := lw.Watch(ctx, o)
	d.forgetIfGone(err)
	return w, err
}

// forgetIfGone forgets the resource if the server answers that it does not exist.
func (d *ListerWatcher) forgetIfGone(err error) {
	if apierrors.IsNotFound(err) {
		d.resources.Forget(d.kind)
	}
}

// resolve returns the ListerWatcher of the resource.
func (d *ListerWatcher) resolve(ctx context.Context) (*listwatch.RESTListerWatcher[objects.Object], error) {
	resource, err := d.resources.Of(ctx, d.kind)
	if err != nil {
		return nil, err
	}
	if resource.Unlisted {
		return nil, apierrors.NewMethodNotSupported(resource.GroupResource(), "list")
	}
	if !resource.Namespaced && d.o.Namespace != "" {
		return nil, fmt.Errorf(
			"%s have no namespaces, but namespace %s was asked for: set InformerOptions.ClusterScoped",
			resource.Resource, d.o.Namespace,
		)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found != nil && d.resource == resource {
		return d.found, nil
	}
	if d.found != nil {
		d.read += d.found.BytesRead()
	}
	o := d.o
	o.Resource = resource.GroupVersionResource
	d.found, d.resource = listwatch.NewRESTListerWatcher[objects.Object](d.client, o), resource
	return d.found, nil
}
