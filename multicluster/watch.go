package multicluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// watch is one input of a controller in one cluster.
type watch struct {
	input    *input
	name     string
	informer informer.Informer[informer.Object]
	// ownersNamespaced asks the cluster whether the kind of the owners is namespaced; nil unless the input is that of
	// Owns.
	ownersNamespaced func(ctx context.Context) (bool, error)

	mu sync.Mutex
	// registration is the handler's registration; nil while there is no handler.
	registration informer.Registration
}

// watch acquires the informer of an input in a cluster.
func (s *controllerSpec) watch(inc *incarnation, in *input) (*watch, error) {
	example := in.object
	if in.options.OnlyMetadata {
		bare := &metav1.PartialObjectMetadata{}
		bare.SetGroupVersionKind(in.kind)
		example = bare
	}
	o := in.options.Restrict(inc.cluster.CacheOf(example))
	o.Kind = in.kind
	inf, err := informer.ForKind(inc.cluster.informers, example, o)
	if err != nil {
		return nil, err
	}
	w := &watch{input: in, name: inf.Health().Resource, informer: inf}
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

func (w *watch) health() informer.Health { return w.informer.Health() }

func (w *watch) stats() informer.Stats { return w.informer.Stats() }

func (w *watch) release() { informer.Release(w.informer) }

// add adds a handler to the informer. The handler turns events into requests of the clusterController.
func (w *watch) add(ctx context.Context, cc *clusterController) (informer.Registration, error) {
	namespaced := true
	if w.ownersNamespaced != nil {
		var err error
		if namespaced, err = w.learnNamespaced(ctx); err != nil {
			return nil, err
		}
	}
	r, err := w.informer.AddHandler(w.events(ctx, cc, w.input.handler(namespaced)), informer.HandlerOptions{})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", w.name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.registration = r
	return r, nil
}

// remove removes the handler. A call of the handler may still be in progress; the requests that it makes are dropped.
func (w *watch) remove() {
	w.mu.Lock()
	r := w.registration
	w.registration = nil
	w.mu.Unlock()
	if r != nil {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = w.informer.RemoveHandler(now, r) // The error only counts undelivered events.
	}
}

// learnNamespaced asks the cluster whether the kind of the owners is namespaced. It asks again until the cluster
// answers.
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

// lowPriority is the priority of initial objects, and of updates in which nothing changed. It is a variable because
// workqueue.AddOptions takes a pointer.
var lowPriority = workqueue.LowPriority

// events adapts h, which makes requests, to a handler of an informer.
func (w *watch) events(ctx context.Context, cc *clusterController, h Handler) informer.Handler[informer.Object] {
	q := func(event string, obj informer.Object, changed bool) reconcile.Enqueuer[Request] {
		cc.controller.events.Add(1)
		return &enqueuer{clusterController: cc, changed: changed, cause: workqueue.Cause{
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
	changed           bool
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
	if o.Priority == nil && !q.changed {
		o.Priority = &lowPriority
	}
	if r.Cluster == q.clusterController.incarnation.name { // this incarnation, even if another has the name now
		q.clusterController.enqueue(key{q.clusterController.incarnation, r.Request}, o, q.changed)
		return
	}
	q.clusterController.controller.enqueueAcross(r, o)
}

// Stats returns the controller's counters, summed over all clusters.
func (c *Controller) Stats() reconcile.Stats {
	s := c.inner.Stats()
	s.Events += c.events.Load()
	return s
}

// InFlight returns the requests that are being reconciled, sorted, each with how long it has been running.
func (c *Controller) InFlight() []string { return c.inner.InFlight() }

// Work returns what the controller has to do. It counts events that the caches have not delivered yet as ready, and
// Started is false until each cluster has been tried once. So RunUntilIdle of the local manager waits for the work of
// the whole fleet, but not for a cluster that cannot be reached.
func (c *Controller) Work() reconcile.Work {
	c.mu.Lock()
	clusterControllers := c.clusterControllersLocked()
	c.mu.Unlock()
	// Read the requests that are held back before the queue. One that moves in between is then counted twice, not
	// missed.
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

// Health returns nil while the controller can reconcile. [Controller.Note] reports clusters that cannot be watched and
// keys that hang.
func (c *Controller) Health() error { return c.inner.Alive() }

// Note describes the problems of single clusters in words; it is empty when there are none.
func (c *Controller) Note() string {
	c.mu.Lock()
	clusterControllers := c.clusterControllersLocked()
	c.mu.Unlock()
	var notes []string
	for k, since := range c.inner.Hung() {
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

// pending returns the number of requests that are held back, plus the number of caches whose handlers have not received
// all events.
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

// settled reports whether no cluster is about to join or leave: all providers have announced their clusters or failed,
// the fleet has tried each cluster at least once, and no cluster is draining.
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
