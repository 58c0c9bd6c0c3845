package garbagecollector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// monitors runs one metadata informer for each resource, and passes what they see to the graph.
type monitors struct {
	// client provides the connection for the informers of all groups.
	client rest.Interface
	// server is a factory of other informers of the same server, or nil.
	server *informer.Factory
	// see and gone are called for the objects of each resource, in the order of the events, with no lock held.
	see  func(ctx context.Context, o object)
	gone func(ctx context.Context, id identity)

	mu sync.Mutex
	// running has the monitors of the resources that the last call of set named.
	running map[schema.GroupVersionResource]*monitor
	// wg counts the goroutines of all monitors, including those that were stopped and have not ended.
	wg sync.WaitGroup
}

// monitor is the informer of one resource.
type monitor struct {
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
	informer informer.Informer[*metav1.PartialObjectMetadata]
	handler  *informer.Registration
	stop     context.CancelFunc
}

// set starts and stops monitors so that exactly the resources of kinds are followed, until ctx is done or the next
// call of set.
func (m *monitors) set(ctx context.Context, kinds map[schema.GroupVersionResource]schema.GroupVersionKind) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == nil {
		m.running = make(map[schema.GroupVersionResource]*monitor)
	}
	for resource, old := range m.running {
		if kinds[resource] != old.kind {
			old.stop()
			delete(m.running, resource)
		}
	}
	for _, resource := range sortedResources(kinds) {
		if m.running[resource] != nil {
			continue
		}
		started, err := m.start(ctx, resource, kinds[resource])
		if err != nil {
			return fmt.Errorf("watch %s: %w", resource.GroupResource(), err)
		}
		m.running[resource] = started
	}
	return nil
}

func (m *monitors) start(ctx context.Context, resource schema.GroupVersionResource,
	kind schema.GroupVersionKind,
) (*monitor, error) {
	ctx, stop := context.WithCancel(ctx)
	lw := listwatch.NewRESTListerWatcher[*metav1.PartialObjectMetadata](m.client,
		listwatch.RESTOptions{Resource: resource, Kind: kind.Kind})
	inf := informer.NewSharedInformer(lw, informer.Options[*metav1.PartialObjectMetadata]{
		Resource: resource.GroupResource().String(), Transform: strip, Server: m.server,
	})
	id := func(o *metav1.PartialObjectMetadata) identity {
		version, name := kind.ToAPIVersionAndKind()
		return identity{apiVersion: version, kind: name, namespace: o.Namespace, name: o.Name, uid: o.UID}
	}
	see := func(o *metav1.PartialObjectMetadata) { m.see(ctx, objectOf(id(o), o)) }
	handler, err := inf.AddHandler(informer.Handler[*metav1.PartialObjectMetadata]{
		OnAdd:    func(o *metav1.PartialObjectMetadata, _ bool) { see(o) },
		OnUpdate: func(_, o *metav1.PartialObjectMetadata) { see(o) },
		OnDelete: func(d informer.Deleted[*metav1.PartialObjectMetadata]) { m.gone(ctx, id(d.Object)) },
	}, informer.HandlerOptions{Name: Name})
	if err != nil {
		stop()
		return nil, err
	}
	m.wg.Go(func() {
		if err := inf.Run(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Monitor ended", "resource", resource.GroupResource())
		}
	})
	return &monitor{resource: resource, kind: kind, informer: inf, handler: handler, stop: stop}, nil
}

// list returns the monitors, sorted by resource.
func (m *monitors) list() []*monitor {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*monitor, 0, len(m.running))
	for _, resource := range sortedResources(m.running) {
		list = append(list, m.running[resource])
	}
	return list
}

// waitForSync waits until the graph has all objects of all resources. If ctx ends first, it returns the monitors that
// have not synced.
func (m *monitors) waitForSync(ctx context.Context) (behind []*monitor) {
	for _, one := range m.list() {
		select {
		case <-one.handler.Synced():
		case <-ctx.Done():
			if !one.handler.HasSynced() {
				behind = append(behind, one)
			}
		}
	}
	return behind
}

// err returns why the monitor has not synced.
func (m *monitor) err() error {
	if h := m.informer.Health(); h.Err != nil {
		return h.Err
	}
	return fmt.Errorf("%s: the cache has not synced", m.resource.GroupResource())
}

// strip returns a new object with the metadata that the graph needs, so that the old one can be freed.
func strip(o *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	return &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace:         o.Namespace,
		Name:              o.Name,
		UID:               o.UID,
		ResourceVersion:   o.ResourceVersion,
		DeletionTimestamp: o.DeletionTimestamp,
		Finalizers:        o.Finalizers,
		OwnerReferences:   o.OwnerReferences,
	}}, nil
}

func sortedResources[V any](of map[schema.GroupVersionResource]V) []schema.GroupVersionResource {
	list := make([]schema.GroupVersionResource, 0, len(of))
	for resource := range of {
		list = append(list, resource)
	}
	slices.SortFunc(list, func(a, b schema.GroupVersionResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Resource, b.Resource))
	})
	return list
}
