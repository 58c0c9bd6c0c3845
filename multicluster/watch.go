package multicluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// Stats returns the counters of the controller, summed over all clusters.
func (c *Controller) Stats() reconcile.Stats {
	s := c.inner.Stats()
	s.Events += c.events.Load()
	return s
}

// InFlight returns the requests that are being reconciled, each with the time it has been running, sorted.
func (c *Controller) InFlight() []string { return c.inner.InFlight() }

// Work returns what the controller has to do. It counts events that the caches have not delivered yet as ready. Started
// is false while clusters are being connected for the first time. So Manager.RunUntilIdle of the local manager waits
// for the work of the whole fleet. It does not wait for a cluster that cannot be reached.
func (c *Controller) Work() reconcile.Work {
	c.mu.Lock()
	clusterControllers := c.clusterControllersLocked()
	c.mu.Unlock()
	// What a cluster still holds back is read before the queue that it goes to.
	started, pending := c.spec.fleet.settled(), 0
	for _, cc := range clusterControllers {
		started = started && !cc.isFilling()
		pending += cc.pending()
	}
	w := c.inner.Work()
	w.Started = w.Started && started
	w.Ready += pending
	return w
}

// Health returns nil when the controller reconciles, or could at once. [Controller.Note] reports clusters that cannot
// be watched, and keys that fail or hang.
func (c *Controller) Health() error { return c.keys.Alive() }

// Note returns, in words, the problems of single clusters; it is empty when there are none.
func (c *Controller) Note() string {
	c.mu.Lock()
	clusterControllers := c.clusterControllersLocked()
	c.mu.Unlock()
	var notes []string
	for k, since := range c.keys.Hung() {
		notes = append(notes, fmt.Sprintf("%v hangs for %v", k, time.Since(since).Round(time.Second)))
	}
	for _, cc := range clusterControllers {
		if err := cc.syncError(); err != nil && cc.incarnation.state() == Live {
			notes = append(notes, fmt.Sprintf("cluster %q: %v", cc.incarnation.name, err))
		}
	}
	slices.Sort(notes)
	if more := len(notes) - maxNoted; more > 0 {
		notes = append(notes[:maxNoted], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(notes, "; ")
}

// pending returns the number of requests held back, plus the number of caches with events that not all handlers have
// got.
func (cc *clusterController) pending() (n int) {
	cc.mu.Lock()
	inputs := cc.inputs
	n = cc.held.Len()
	cc.mu.Unlock()
	if cc.incarnation.name == LocalCluster {
		return n // The local manager counts its caches itself.
	}
	for _, w := range inputs {
		s := w.stats()
		if s.Queued > 0 ||
			slices.ContainsFunc(s.Handlers,
				func(h informer.HandlerStats) bool { return h.Pending > 0 || h.Running > 0 }) {
			n++
		}
	}
	return n
}

// settled reports whether no cluster is about to join or leave: all providers have announced theirs, and each of these
// was tried at least once.
func (m *Manager) settled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.announcers {
		if !a.synced && a.err == nil {
			return false
		}
	}
	for _, n := range m.names {
		if n.since.IsZero() || n.state == Joining && n.attempts == 0 || n.state >= Draining {
			return false
		}
	}
	return m.start != nil || m.ran
}
