package garbagecollector

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	// observed and deleted are called for the objects of each resource, in the order of the events.
	observed func(ctx context.Context, o object)
	deleted  func(ctx context.Context, id identity)
	// stopped is called with the numbers of the stopped monitors of a resource: at once if the resource is not watched
	// any more, otherwise when the monitor that replaces them has synced.
	stopped func(ctx context.Context, stopped []int64)

	mu sync.Mutex
	// running has the monitors of the resources that the last call of set named. started is how many were started.
	running map[schema.GroupResource]*monitor
	started int64
	// wg counts the goroutines of all monitors, including those that were stopped and have not ended.
	wg sync.WaitGroup
}

// monitor is the informer of one resource, in one version.
type monitor struct {
	number   int64   // unique among all monitors
	replaced []int64 // the numbers of all monitors of the resource that were stopped before
	resource schema.GroupResource
	kind     schema.GroupVersionKind
	informer informer.Informer[*metav1.PartialObjectMetadata]
	handler  informer.Registration
	stop     context.CancelFunc
	ended    chan struct{} // closed when the informer has ended
}

// set starts and stops monitors so that exactly the resources of kinds are watched, until ctx is done or the next call
// of set.
//
// A resource whose version or kind changes gets another monitor. It starts when the old one has ended, so that the
// events of an object stay in order. An object may be deleted in between, where neither sees it; stopped handles that.
func (m *monitors) set(ctx context.Context, kinds kinds) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == nil {
		m.running = make(map[schema.GroupResource]*monitor)
	}
	replaced := make(map[schema.GroupResource][]int64)
	for _, resource := range sortedResources(m.running) {
		old := m.running[resource]
		if kinds[resource] == old.kind {
			continue
		}
		old.stop()
		<-old.ended
		delete(m.running, resource)
		stopped := append(old.replaced, old.number)
		if _, served := kinds[resource]; served {
			replaced[resource] = stopped
		} else {
			m.stopped(ctx, stopped)
		}
	}
	for _, resource := range sortedResources(kinds) {
		if m.running[resource] != nil {
			continue
		}
		started, err := m.start(ctx, resource, kinds[resource], replaced[resource])
		if err != nil {
			return fmt.Errorf("watch %s: %w", resource, err)
		}
		m.running[resource] = started
	}
	return nil
}

// start starts a monitor in place of those with the given numbers.
func (m *monitors) start(ctx context.Context, resource schema.GroupResource, kind schema.GroupVersionKind,
	replaced []int64,
) (*monitor, error) {
	ctx, stop := context.WithCancel(ctx)
	lw := listwatch.NewRESTListerWatcher[*metav1.PartialObjectMetadata](m.client,
		listwatch.RESTOptions{Resource: resource.WithVersion(kind.Version), Kind: kind.Kind})
	inf := informer.NewSharedInformer(lw, informer.Options[*metav1.PartialObjectMetadata]{
		Resource: resource.String(), Transform: strip, Server: m.server,
	})
	m.started++
	mon := &monitor{
		number: m.started, replaced: replaced, resource: resource, kind: kind, informer: inf, stop: stop,
		ended: make(chan struct{}),
	}
	observe := func(o *metav1.PartialObjectMetadata) { m.observed(ctx, objectOf(mon, o)) }
	handler, err := inf.AddHandler(informer.Handler[*metav1.PartialObjectMetadata]{
		OnAdd:    func(o *metav1.PartialObjectMetadata, _ bool) { observe(o) },
		OnUpdate: func(_, o *metav1.PartialObjectMetadata) { observe(o) },
		OnDelete: func(d informer.Deleted[*metav1.PartialObjectMetadata]) { m.deleted(ctx, mon.identify(d.Object)) },
	}, informer.HandlerOptions{Name: Name})
	if err != nil {
		stop()
		return nil, err
	}
	mon.handler = handler
	m.wg.Go(func() {
		defer close(mon.ended)
		if err := inf.Run(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Monitor ended", "resource", resource)
		}
	})
	if len(replaced) > 0 {
		m.wg.Go(func() {
			select {
			case <-handler.Synced():
				m.stopped(ctx, replaced)
			case <-ctx.Done():
			}
		})
	}
	return mon, nil
}

func (m *monitor) identify(o metav1.Object) identity {
	return identity{kind: m.kind.GroupKind(), namespace: o.GetNamespace(), name: o.GetName(), uid: o.GetUID()}
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
	for _, mon := range m.list() {
		select {
		case <-mon.handler.Synced():
		case <-ctx.Done():
			if !mon.handler.HasSynced() {
				behind = append(behind, mon)
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
	return fmt.Errorf("%s: the cache has not synced", m.resource)
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

func sortedResources[V any](of map[schema.GroupResource]V) []schema.GroupResource {
	return slices.SortedFunc(maps.Keys(of), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
}
