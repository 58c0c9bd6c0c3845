package multicluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// watch is one input of a controller in one cluster.
type watch struct {
	input    *input
	name     string
	informer anyInformer
	// ownersNamespaced asks the cluster whether owners are namespaced; nil unless the input is of Owns.
	ownersNamespaced func(ctx context.Context) (bool, error)

	mu sync.Mutex
	// registration is the handler; nil when there is none.
	registration *informer.Registration
}

// anyInformer is an informer of any object type.
type anyInformer interface {
	add(h informer.Handler[informer.Object]) (*informer.Registration, error)
	remove(r *informer.Registration)
	health() informer.Health
	stats() informer.Stats
	release()
}

// watch acquires the informer of an input in a cluster.
func (s *controllerSpec) watch(inc *incarnation, in *input) (*watch, error) {
	example := in.object
	if in.options.OnlyMetadata {
		bare := &metav1.PartialObjectMetadata{}
		bare.SetGroupVersionKind(in.kind)
		example = bare
	}
	o := in.options.Restrict(s.fleet.cacheOf(inc, example))
	o.Kind = in.kind
	var inf anyInformer
	var err error
	switch f := inc.cluster.informers; example.(type) {
	case *metav1.PartialObjectMetadata:
		inf, err = informerFor[*metav1.PartialObjectMetadata](f, o)
	case *unstructured.Unstructured:
		inf, err = informerFor[*unstructured.Unstructured](f, o)
	default:
		inf, err = informerFor[informer.Object](f, o)
	}
	if err != nil {
		return nil, err
	}
	w := &watch{input: in, name: inf.health().Resource, informer: inf}
	if inc.name != LocalCluster {
		w.name = inc.name + " " + w.name
	}
	if in.owns {
		w.ownersNamespaced = func(ctx context.Context) (bool, error) {
			return inc.cluster.IsObjectNamespaced(ctx, s.forInput.object)
		}
	}
	return w, nil
}

// cacheOf returns the options for the cache of a kind in a cluster.
func (m *Manager) cacheOf(inc *incarnation, example informer.Object) informer.InformerOptions {
	if inc == m.localCluster {
		return m.local.CacheOf(example)
	}
	form := func(o informer.Object) string {
		kind, err := m.kinds.GroupVersionKindFor(o)
		switch o.(type) {
		case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
			return fmt.Sprintf("%T %v %v", o, kind, err)
		}
		return fmt.Sprintf("typed %v %v", kind, err)
	}
	for _, of := range m.options.Caches {
		if form(of.Object) == form(example) {
			return of.Informer
		}
	}
	return informer.InformerOptions{}
}

func (w *watch) health() informer.Health { return w.informer.health() }

func (w *watch) stats() informer.Stats { return w.informer.stats() }

func (w *watch) release() { w.informer.release() }

// add makes the watch's events requests of the clusterController.
func (w *watch) add(ctx context.Context, cc *clusterController) (*informer.Registration, error) {
	namespaced := true
	if w.ownersNamespaced != nil {
		var err error
		if namespaced, err = w.learnNamespaced(ctx); err != nil {
			return nil, err
		}
	}
	r, err := w.informer.add(w.events(ctx, cc, w.input.handler(namespaced)))
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", w.name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.registration = r
	return r, nil
}

// remove removes the handler. A call to it may still be under way; the requests it makes are dropped.
func (w *watch) remove() {
	w.mu.Lock()
	r := w.registration
	w.registration = nil
	w.mu.Unlock()
	if r != nil {
		w.informer.remove(r)
	}
}

// learnNamespaced asks the cluster, until it answers, whether the owners are namespaced.
func (w *watch) learnNamespaced(ctx context.Context) (namespaced bool, err error) {
	retry := newBackoff(informer.Backoff{Min: time.Second, Max: 30 * time.Second})
	for {
		if namespaced, err = w.ownersNamespaced(ctx); err == nil {
			return namespaced, nil
		}
		if !retry.wait(ctx) {
			return false, context.Cause(ctx)
		}
	}
}

// lowPriority is the priority of objects that were there when the watch began, and of those that did not change.
var lowPriority = workqueue.LowPriority

// events adapts a handler that makes requests to an informer.
func (w *watch) events(ctx context.Context, e *clusterController, h Handler) informer.Handler[informer.Object] {
	q := func(event string, obj informer.Object, news bool) reconcile.Enqueuer[Request] {
		e.controller.events.Add(1)
		return &enqueuer{clusterController: e, news: news, cause: workqueue.Cause{
			Source: w.name, Event: event, Object: informer.Key(obj), ResourceVersion: obj.GetResourceVersion(),
			Time: time.Now(),
		}}
	}
	var on informer.Handler[informer.Object]
	if h.OnAdd != nil {
		on.OnAdd = func(obj informer.Object, initial bool) { h.OnAdd(ctx, obj, initial, q("Add", obj, !initial)) }
	}
	if h.OnUpdate != nil {
		on.OnUpdate = func(old, obj informer.Object) {
			h.OnUpdate(ctx, old, obj, q("Update", obj, old.GetResourceVersion() != obj.GetResourceVersion()))
		}
	}
	if h.OnDelete != nil {
		on.OnDelete = func(gone informer.Deleted[informer.Object]) {
			h.OnDelete(ctx, gone, q("Delete", gone.Object, true))
		}
	}
	return on
}

// enqueuer queues the requests of one event.
type enqueuer struct {
	clusterController *clusterController
	cause             workqueue.Cause
	news              bool
}

// Add implements reconcile.Enqueuer.
func (q *enqueuer) Add(r Request) { q.AddWith(r, workqueue.AddOptions{}) }

// AddAfter implements reconcile.Enqueuer.
func (q *enqueuer) AddAfter(r Request, d time.Duration) { q.AddWith(r, workqueue.AddOptions{After: d}) }

// AddRateLimited implements reconcile.Enqueuer.
func (q *enqueuer) AddRateLimited(r Request) { q.AddWith(r, workqueue.AddOptions{RateLimited: true}) }

// AddWith implements reconcile.Enqueuer.
func (q *enqueuer) AddWith(r Request, o workqueue.AddOptions) {
	if o.Cause == (workqueue.Cause{}) {
		o.Cause = q.cause
	}
	if o.Priority == nil && !q.news {
		o.Priority = &lowPriority
	}
	if r.Cluster == q.clusterController.incarnation.name { // Of this incarnation, whichever has the name now.
		q.clusterController.enqueue(key{q.clusterController.incarnation, r.Request}, o, q.news)
		return
	}
	q.clusterController.controller.enqueueAcross(r, o)
}

// informerFor returns the informer of a type.
func informerFor[T informer.Object](f *informer.Factory, o informer.InformerOptions) (anyInformer, error) {
	inf, err := informer.ForOptions[T](f, o)
	if err != nil {
		return nil, err
	}
	return &informerOf[T]{inf}, nil
}

type informerOf[T informer.Object] struct{ informer.Informer[T] }

func (i *informerOf[T]) health() informer.Health { return i.Health() }

func (i *informerOf[T]) stats() informer.Stats { return i.Stats() }

func (i *informerOf[T]) release() { informer.Release(i.Informer) }

func (i *informerOf[T]) remove(r *informer.Registration) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = i.RemoveHandler(now, r) // The error counts undelivered events, which nobody wants any more.
}

func (i *informerOf[T]) add(h informer.Handler[informer.Object]) (*informer.Registration, error) {
	var on informer.Handler[T]
	if h.OnAdd != nil {
		on.OnAdd = func(obj T, initial bool) { h.OnAdd(obj, initial) }
	}
	if h.OnUpdate != nil {
		on.OnUpdate = func(old, obj T) { h.OnUpdate(old, obj) }
	}
	if h.OnDelete != nil {
		on.OnDelete = func(d informer.Deleted[T]) {
			h.OnDelete(informer.Deleted[informer.Object]{Key: d.Key, Object: d.Object, Stale: d.Stale})
		}
	}
	return i.AddHandler(on, informer.HandlerOptions{})
}
