package multicluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/backlog"
	"github.com/flyball-dev/flyball/workqueue"
)

// clusterController is the part of a controller that belongs to one incarnation of a cluster: the informers that the
// controller uses there, and the requests that are held back until their caches are filled.
//
//	new ─▶ opened: the caches fill ─▶ attached: events become requests, which are held back ─▶ synced: requests are queued
type clusterController struct {
	controller  *Controller
	incarnation *incarnation

	mu sync.Mutex
	// inputs are the watches; nil before open.
	inputs []*watch
	opened bool
	// synced means that every input has delivered its initial objects.
	synced bool
	closed bool
	// held has the requests that are held back until synced.
	held *backlog.Backlog[key, workqueue.Cause]
	// spawn starts a goroutine, and stop ends all of them; both are nil while it is not attached. tasks counts the
	// goroutines.
	stop  context.CancelFunc
	spawn func(task func(ctx context.Context))
	tasks sync.WaitGroup
	// onGone calls the onGone functions; nil before it was attached.
	onGone func()
	// problem is why it is not synced, if that is known.
	problem error
}

func newClusterController(c *Controller, inc *incarnation) *clusterController {
	return &clusterController{controller: c, incarnation: inc, held: backlog.New[key, workqueue.Cause](nil)}
}

// enqueue queues a request, or holds it back until the caches are filled. changed means that the request comes from a
// change, not from an initial object or a resync.
func (cc *clusterController) enqueue(k key, o workqueue.AddOptions, changed bool) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	switch {
	case cc.closed:
		cc.controller.spec.fleet.dropped.Add(1)
	case !cc.held.Add(k, backlog.Options[workqueue.Cause](o), changed):
		cc.controller.inner.EnqueueWith(k, o) // Safe under mu: the queue neither blocks nor calls back.
	}
}

// hold holds back a request that a worker has taken, if the caches are not filled yet. It reports whether it did.
func (cc *clusterController) hold(k key) bool {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	return !cc.synced && !cc.closed && cc.held.Add(k, backlog.Options[workqueue.Cause]{}, true)
}

// markSynced queues the requests that were held back.
func (cc *clusterController) markSynced() {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.closed {
		return
	}
	cc.synced, cc.problem = true, nil
	cc.held.Flush(func(k key, o backlog.Options[workqueue.Cause]) {
		cc.controller.inner.EnqueueWith(k, workqueue.AddOptions(o))
	})
}

// open acquires the informers, whose caches then begin to fill.
func (cc *clusterController) open() {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.opened || cc.closed {
		return
	}
	cc.opened = true
	for _, in := range cc.controller.spec.inputsOf(cc.incarnation) {
		w, err := cc.controller.spec.watch(cc.incarnation, in)
		if err != nil {
			cc.problem = fmt.Errorf("%s(%T): %w", in.call, in.object, err)
			continue
		}
		cc.inputs = append(cc.inputs, w)
	}
}

// attach turns events into requests until base is done or detach is called.
func (cc *clusterController) attach(base context.Context) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.closed || !cc.opened || cc.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.WithValue(base, clusterKey{}, cc.incarnation.cluster))
	cc.stop = stop
	if cc.incarnation.name != LocalCluster {
		ctx = klog.NewContext(ctx,
			klog.LoggerWithValues(klog.FromContext(ctx), "controller", cc.controller.spec.name, "cluster",
				cc.incarnation.name))
	}
	cc.onGone = func() {
		if base.Err() == nil {
			cc.callOnGone(base)
		}
	}
	cc.spawn = func(task func(context.Context)) { cc.tasks.Go(func() { task(ctx) }) }
	inputs := cc.inputs
	cc.spawn(func(ctx context.Context) { cc.feed(ctx, inputs) })
}

// feed adds the handlers and waits until each has received the initial objects.
func (cc *clusterController) feed(ctx context.Context, inputs []*watch) {
	var added []informer.Registration
	for _, w := range inputs {
		r, err := w.add(ctx, cc)
		if err != nil {
			if ctx.Err() == nil {
				cc.fail(ctx, err)
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
	cc.markSynced()
	cc.callOnLive(ctx)
}

// callOnLive calls the onLive functions, each of them until it succeeds.
func (cc *clusterController) callOnLive(ctx context.Context) {
	p := cc.controller.spec
	if cc.incarnation == p.fleet.localCluster && !p.engageLocal {
		return
	}
	for _, h := range p.clusterHandlers {
		retry := newBackoff(informer.Backoff{Min: time.Second, Max: 30 * time.Second})
		for h.onLive != nil {
			requests, err := h.onLive(ctx, cc.incarnation.cluster)
			cc.enqueueAll("Live", requests)
			if err == nil {
				break
			}
			klog.FromContext(ctx).Error(err,
				"OnLive failed; calling it again")
			if !retry.wait(ctx) {
				return
			}
		}
	}
}

// callOnGone calls the onGone functions.
func (cc *clusterController) callOnGone(ctx context.Context) {
	for _, h := range cc.controller.spec.clusterHandlers {
		if h.onGone != nil {
			cc.enqueueAll("Gone", h.onGone(ctx, cc.incarnation.cluster.Info()))
		}
	}
}

// enqueueAll queues requests for any clusters. Their cause is an event of this cluster.
func (cc *clusterController) enqueueAll(event string, requests []Request) {
	for _, r := range requests {
		cc.controller.enqueueAcross(r, workqueue.AddOptions{Cause: workqueue.Cause{
			Source: "clusters", Event: event, Object: cc.incarnation.name, Time: time.Now(),
		}})
	}
}

// onRelabel calls the onLive functions again, because the labels of the cluster have changed.
func (cc *clusterController) onRelabel() {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.synced && cc.spawn != nil && len(cc.controller.spec.clusterHandlers) > 0 {
		cc.spawn(cc.callOnLive)
	}
}

func (cc *clusterController) fail(ctx context.Context, err error) {
	klog.FromContext(ctx).Error(err, "Cannot watch cluster")
	cc.mu.Lock()
	defer cc.mu.Unlock()
	cc.problem = err
}

// detach stops turning events into requests.
func (cc *clusterController) detach() {
	cc.mu.Lock()
	stop, inputs := cc.stop, cc.inputs
	cc.stop, cc.spawn = nil, nil
	cc.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	cc.tasks.Wait()
	for _, w := range inputs {
		w.remove()
	}
}

// close drops the requests that are held back and releases the informers. It is final.
func (cc *clusterController) close() {
	cc.mu.Lock()
	cc.closed = true
	cc.controller.spec.fleet.dropped.Add(uint64(cc.held.Len()))
	cc.held.Flush(func(key, backlog.Options[workqueue.Cause]) {})
	inputs := cc.inputs
	cc.mu.Unlock()
	cc.detach()
	for _, w := range inputs {
		w.release()
	}
}

// isFilling reports whether initial objects are still expected to become requests.
func (cc *clusterController) isFilling() bool {
	cc.mu.Lock()
	synced, inputs, problem := cc.synced, cc.inputs, cc.problem
	cc.mu.Unlock()
	if cc.incarnation.state() != Live || problem != nil {
		return false
	}
	for _, w := range inputs {
		if h := w.health(); h.Err != nil && !h.Synced {
			return false // The cache may never fill, so RunUntilIdle does not wait for it.
		}
	}
	return !synced
}

// syncError returns why the cluster's caches are not synced, in words for people. It returns nil if they are synced,
// and if no reason is known.
func (cc *clusterController) syncError() error {
	cc.mu.Lock()
	synced, inputs, problem := cc.synced, cc.inputs, cc.problem
	cc.mu.Unlock()
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
