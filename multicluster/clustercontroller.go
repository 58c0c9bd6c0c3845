package multicluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/loop/backlog"
	"github.com/flyball-dev/flyball/workqueue"
)

// clusterController is one controller's part in one incarnation of a cluster: the informers that it watches there, and
// the requests that are held back until the caches are filled.
//
//	admitted ─▶ open: the informers fill ─▶ attached: events become requests, which are held ─▶ synced: they are queued
type clusterController struct {
	controller  *Controller
	incarnation *incarnation

	mu sync.Mutex
	// inputs are the watches; nil before open.
	inputs []*watch
	opened bool
	// synced reports whether every input has delivered its initial objects.
	synced bool
	closed bool
	// held has the requests that are held back until synced.
	held *backlog.Backlog[key]
	// stop ends the goroutines; nil when there are none. Invariant: all of them are in tasks.
	stop  context.CancelFunc
	spawn func(task func(ctx context.Context))
	// gone calls the OnGone handlers; nil before the clusterController was attached.
	gone  func()
	tasks sync.WaitGroup
	// problem is why it is not synced, if that is known.
	problem error
}

func newClusterController(c *Controller, inc *incarnation) *clusterController {
	return &clusterController{controller: c, incarnation: inc, held: backlog.New[key](nil)}
}

// enqueue queues a request, or holds it back until the caches are filled. news reports whether something has changed.
func (e *clusterController) enqueue(k key, o workqueue.AddOptions, news bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		e.controller.parts.fleet.dropped.Add(1)
	case !e.held.Add(k, o, news):
		e.controller.keys.Add(k, o) // Safe under mu: the queue neither blocks nor calls back.
	}
}

// hold holds back a request that a worker took before the caches were filled. It reports whether it did.
func (e *clusterController) hold(k key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.synced && !e.closed && e.held.Add(k, workqueue.AddOptions{}, true)
}

// ready queues the requests that were held back.
func (e *clusterController) ready() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.synced, e.problem = true, nil
	e.held.Flush(e.controller.keys.Add)
}

// open acquires the informers, which start to fill.
func (e *clusterController) open() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.opened || e.closed {
		return
	}
	e.opened = true
	for _, in := range e.controller.parts.inputsOf(e.incarnation) {
		w, err := e.controller.parts.watch(e.incarnation, in)
		if err != nil {
			e.problem = fmt.Errorf("%s(%T): %w", in.call, in.object, err)
			continue
		}
		e.inputs = append(e.inputs, w)
	}
}

// attach turns events into requests until base is done or detach is called.
func (e *clusterController) attach(base context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || !e.opened || e.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.WithValue(base, clusterKey{}, e.incarnation.cluster))
	e.stop = stop
	if e.incarnation.name != LocalCluster {
		ctx = klog.NewContext(ctx,
			klog.LoggerWithValues(klog.FromContext(ctx), "controller", e.controller.parts.name, "cluster",
				e.incarnation.name))
	}
	e.gone = func() {
		if base.Err() == nil {
			e.tellGone(base)
		}
	}
	e.spawn = func(task func(context.Context)) { e.tasks.Go(func() { task(ctx) }) }
	inputs := e.inputs
	e.spawn(func(ctx context.Context) { e.feed(ctx, inputs) })
}

// feed adds the handlers and waits until all have got the initial objects.
func (e *clusterController) feed(ctx context.Context, inputs []*watch) {
	var added []*informer.Registration
	for _, w := range inputs {
		r, err := w.add(ctx, e)
		if err != nil {
			if ctx.Err() == nil {
				e.fail(ctx, err)
			}
			return
		}
		added = append(added, r)
	}
	for _, r := range added {
		select {
		case <-r.Synced():
		case <-ctx.Done():
			return
		}
	}
	e.ready()
	e.tellLive(ctx)
}

// tellLive calls the OnLive handlers, again while they fail.
func (e *clusterController) tellLive(ctx context.Context) {
	p := e.controller.parts
	if e.incarnation == p.fleet.localCluster && !p.local {
		return
	}
	for _, h := range p.clusters {
		again := newRetries(informer.Backoff{Min: time.Second, Max: 30 * time.Second})
		for h.OnLive != nil {
			requests, err := h.OnLive(ctx, e.incarnation.cluster)
			e.enqueueAll("Live", requests)
			if err == nil {
				break
			}
			klog.FromContext(ctx).Error(err,
				"What a cluster that is live asks for cannot be found out, and is tried again")
			if !again.pause(ctx) {
				return
			}
		}
	}
}

// tellGone calls the OnGone handlers.
func (e *clusterController) tellGone(ctx context.Context) {
	for _, h := range e.controller.parts.clusters {
		if h.OnGone != nil {
			e.enqueueAll("Gone", h.OnGone(ctx, e.incarnation.cluster.Info()))
		}
	}
}

// enqueueAll queues requests for any clusters, with an event of this cluster as their cause.
func (e *clusterController) enqueueAll(event string, requests []Request) {
	for _, r := range requests {
		e.controller.enqueueAcross(r, workqueue.AddOptions{Cause: workqueue.Cause{
			Source: "clusters", Event: event, Object: e.incarnation.name, Time: time.Now(),
		}})
	}
}

// relabeled is called when the labels of the cluster have changed.
func (e *clusterController) relabeled() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.synced && e.spawn != nil && len(e.controller.parts.clusters) > 0 {
		e.spawn(e.tellLive)
	}
}

func (e *clusterController) fail(ctx context.Context, err error) {
	klog.FromContext(ctx).Error(err, "A cluster cannot be watched")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.problem = err
}

// detach stops turning events into requests.
func (e *clusterController) detach() {
	e.mu.Lock()
	stop, inputs := e.stop, e.inputs
	e.stop, e.spawn = nil, nil
	e.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	e.tasks.Wait()
	for _, w := range inputs {
		w.remove()
	}
}

// close ends it for good: it drops the requests that are held back and releases the informers.
func (e *clusterController) close() {
	e.mu.Lock()
	e.closed = true
	e.controller.parts.fleet.dropped.Add(uint64(e.held.Len()))
	e.held.Flush(func(key, workqueue.AddOptions) {})
	inputs := e.inputs
	e.mu.Unlock()
	e.detach()
	for _, w := range inputs {
		w.release()
	}
}

// waits reports whether initial objects may still become requests soon.
func (e *clusterController) waits() bool {
	e.mu.Lock()
	synced, inputs, problem := e.synced, e.inputs, e.problem
	e.mu.Unlock()
	if e.incarnation.state() != Live || problem != nil {
		return false
	}
	for _, w := range inputs {
		if h := w.health(); h.Err != nil && !h.Synced {
			return false // It may never fill: RunUntilIdle does not wait for it.
		}
	}
	return !synced
}

// why returns why it is not synced, in words for people; nil when it is synced, or the reason is not known.
func (e *clusterController) why() error {
	e.mu.Lock()
	synced, inputs, problem := e.synced, e.inputs, e.problem
	e.mu.Unlock()
	if synced || problem != nil {
		return problem
	}
	for _, w := range inputs {
		if h := w.health(); !h.Synced && h.Err != nil {
			return h.Err
		}
	}
	return nil
}
