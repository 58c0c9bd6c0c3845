package multicluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// key is a request in the queue. It has the incarnation in place of the cluster's name, so the same object has another
// key in another incarnation.
type key struct {
	incarnation *incarnation
	request     reconcile.Request
}

func (k key) public() Request { return Request{Cluster: k.incarnation.name, Request: k.request} }

func (k key) String() string { return k.public().String() }

// Controller works on the clusters of a fleet. It has one queue, with a lane for each cluster. It is a runnable of the
// local manager, with all the features of a controller of one cluster.
//
// Concurrency: all methods may be called from any goroutine. Only the local manager may call Run, once.
type Controller struct {
	spec  *controllerSpec
	inner *reconcile.Controller[key]

	events atomic.Uint64

	mu sync.Mutex
	// clusterControllers has one entry for each cluster that the controller selects. It is made while the cluster is
	// Joining, and removed when the cluster has drained.
	clusterControllers map[*incarnation]*clusterController
	phase              phase
	// attach makes a clusterController feed the queue. Invariant: it is non-nil while the controller runs, and only
	// then.
	attach func(*clusterController)
}

// phase is the phase of a controller's life. It only moves forward.
type phase int

const (
	created phase = iota
	running
	ended
)

var (
	_ manager.Rebuilder = (*Controller)(nil)
	_ reconcile.Loop    = (*Controller)(nil)
)

func newController(p *controllerSpec) *Controller {
	c := &Controller{spec: p, clusterControllers: map[*incarnation]*clusterController{}}
	order := workqueue.NewFairOrder(workqueue.FairOptions[key]{
		Group:      func(k key) string { return k.incarnation.group },
		Within:     &workqueue.PriorityOptions{},
		GroupLimit: p.clusterWorkers(),
		Limit:      p.workers(),
	})
	o := p.innerOptions(order)
	o.Admit = c.admitted
	c.inner = reconcile.New(p.name, reconcile.Func[key](c.reconcile), o)
	return c
}

// Name names the controller in logs, metrics and health.
func (c *Controller) Name() string { return c.spec.name }

// NeedLeaderElection reports whether the controller runs only while its process leads.
func (c *Controller) NeedLeaderElection() bool { return !c.spec.leaderless }

// Enqueue queues a request at once, for a reason outside the clusters. While the cluster is Joining, the request is
// held back. It is dropped if the cluster is not in the fleet, is Waiting, or is not selected by the controller.
func (c *Controller) Enqueue(r Request) {
	c.enqueueAcross(r,
		workqueue.AddOptions{Cause: workqueue.Cause{Source: "manual", Event: "Enqueue", Time: time.Now()}})
}

// EnqueueAfter queues a request after d, and is otherwise like Enqueue.
func (c *Controller) EnqueueAfter(r Request, d time.Duration) {
	c.enqueueAcross(r,
		workqueue.AddOptions{
			After: d,
			Cause: workqueue.Cause{Source: "manual", Event: "EnqueueAfter", Time: time.Now()},
		})
}

// enqueueAcross queues a request for the incarnation that has the cluster's name now.
func (c *Controller) enqueueAcross(r Request, o workqueue.AddOptions) {
	inc, err := c.spec.fleet.incarnation(r.Cluster)
	if err != nil {
		c.spec.fleet.dropped.Add(1)
		return
	}
	c.enqueue(key{inc, r.Request}, o)
}

func (c *Controller) enqueue(k key, o workqueue.AddOptions) {
	if cc := c.clusterController(k.incarnation); cc != nil {
		cc.enqueue(k, o, true)
		return
	}
	c.spec.fleet.dropped.Add(1)
}

func (c *Controller) clusterController(inc *incarnation) *clusterController {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clusterControllers[inc]
}

// Run reconciles until ctx is done, as reconcile.Controller does.
func (c *Controller) Run(ctx context.Context) error {
	clusterControllers, ok := c.begin(ctx)
	if !ok {
		return fmt.Errorf("controller %s: run: %w", c.spec.name, reconcile.ErrStopped)
	}
	for _, cc := range clusterControllers {
		cc.attach(ctx)
	}
	err := c.inner.Run(ctx)
	for _, cc := range c.finish() {
		cc.detach()
	}
	return err
}

func (c *Controller) begin(ctx context.Context) ([]*clusterController, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != created {
		return nil, false
	}
	c.phase = running
	c.attach = func(cc *clusterController) { cc.attach(ctx) }
	return c.clusterControllersLocked(), true
}

func (c *Controller) finish() []*clusterController {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase, c.attach = ended, nil
	return c.clusterControllersLocked()
}

func (c *Controller) clusterControllersLocked() []*clusterController {
	return slices.Collect(maps.Values(c.clusterControllers))
}

// admit makes the controller take requests for a cluster that it selects, and forget a cluster that it does not select.
func (c *Controller) admit(inc *incarnation) {
	if c.spec.selects(inc) {
		c.mu.Lock()
		if c.clusterControllers[inc] == nil && inc.state() < Draining {
			c.clusterControllers[inc] = newClusterController(c, inc)
		}
		c.mu.Unlock()
	}
	if !c.spec.selects(inc) { // The labels may have changed in between, when relabel had nothing to dismiss yet.
		c.dismiss(inc)
	}
}

// engage makes the controller watch a Live cluster that it selects.
func (c *Controller) engage(inc *incarnation) {
	c.admit(inc)
	cc := c.clusterController(inc)
	if cc == nil || inc.state() != Live {
		return
	}
	cc.open()
	c.mu.Lock()
	attach := c.attach // Read after open. If Run begins in between, it attaches cc, because cc is open.
	c.mu.Unlock()
	if attach != nil {
		attach(cc)
	}
}

// relabel applies the controller's filters to a cluster again.
func (c *Controller) relabel(inc *incarnation) {
	if cc := c.clusterController(inc); cc != nil && c.spec.selects(inc) {
		cc.onRelabel()
		return
	}
	c.engage(inc)
}

// dismiss releases the cluster's informers and forgets its requests.
func (c *Controller) dismiss(inc *incarnation) {
	c.mu.Lock()
	cc := c.clusterControllers[inc]
	delete(c.clusterControllers, inc)
	c.mu.Unlock()
	if cc == nil {
		return
	}
	cc.close()
	c.inner.ForgetFunc(func(k key) bool { return k.incarnation == inc })
	if cc.onGone != nil && !inc.processStops.Load() {
		cc.onGone()
	}
}

// Rebuild implements manager.Rebuilder. It returns a new controller that uses the same caches, so they stay filled.
func (c *Controller) Rebuild() (manager.Runnable, error) {
	fresh := newController(c.spec)
	if !c.spec.fleet.replace(c, fresh) {
		return nil, errors.New("it was removed: build it with a Builder again")
	}
	c.closeAll()
	return fresh, nil
}

// Release releases the controller's informers in all clusters. The manager calls it when it removes the controller.
func (c *Controller) Release() {
	c.spec.fleet.replace(c, nil)
	c.closeAll()
}

func (c *Controller) closeAll() {
	c.mu.Lock()
	all := c.clusterControllersLocked()
	clear(c.clusterControllers)
	c.mu.Unlock()
	for _, cc := range all {
		cc.close()
	}
}

// admitted reports whether a key may be reconciled now. It may not while the caches of its cluster are not filled: the
// key is then held back, and queued again later.
func (c *Controller) admitted(k key) bool {
	cc := c.clusterController(k.incarnation)
	return cc == nil || !cc.hold(k)
}

// reconcile is the reconciler of the inner controller. It registers the reconcile with the cluster, so that the cluster
// does not leave meanwhile.
func (c *Controller) reconcile(ctx context.Context, k key) (reconcile.Result, error) {
	cc := c.clusterController(k.incarnation)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	u := &clustersInUse{fleet: c.spec.fleet, name: k.incarnation.name, cancel: cancel}
	defer u.end()
	ctx = context.WithValue(ctx, clustersInUseKey{}, u)
	leave, err := k.incarnation.enter(cancel)
	switch {
	case cc == nil || errors.Is(err, ErrClusterGone):
		if err == nil {
			leave()
		}
		return c.departed(ctx, k)
	case err != nil: // The tenure's Check failed. The tenure will soon be lost, or be valid again.
		return reconcile.Result{}, &client.StaleError{RetryAfter: ownerRetry}
	}
	defer leave()
	u.incarnation = k.incarnation
	result, err := c.run(ctx, k)
	if k.incarnation.state() >= Draining {
		if err != nil {
			klog.FromContext(ctx).Error(err, "Reconcile failed; not retrying, because its cluster is leaving")
		}
		return reconcile.Result{}, nil
	}
	return result, err
}

// ownerRetry is the delay of a key while it is uncertain whether this replica still serves the cluster.
const ownerRetry = time.Second

// run calls the reconciler. Its context carries the cluster, the logger and the write fence.
func (c *Controller) run(ctx context.Context, k key) (reconcile.Result, error) {
	if k.incarnation.name != LocalCluster {
		ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "cluster", k.incarnation.name))
		ctx = leader.WithFence(ctx, k.incarnation.checkWrite)
	}
	ctx = context.WithValue(ctx, clusterKey{}, k.incarnation.cluster)
	if ready := c.spec.options.Ready; ready != nil {
		if err := ready(ctx, k.public()); err != nil {
			return reconcile.Result{}, err
		}
	}
	return c.spec.reconciler.Reconcile(ctx, k.public())
}

// departed handles a request whose cluster has departed. It drops the request. With [Builder.ReportGone] it then queues
// a report, if the controller selects the cluster. The report's key has a tombstone for its incarnation, so that it
// keeps nothing of the cluster in memory, however often the reconciler fails.
func (c *Controller) departed(ctx context.Context, k key) (reconcile.Result, error) {
	if k.incarnation.tombstone == nil { // It is a tombstone: k is a report.
		_, err := c.spec.reconciler.Reconcile(ctx, k.public())
		return reconcile.Result{}, err
	}
	c.spec.fleet.dropped.Add(1)
	c.inner.Forget(k)
	if !c.spec.reportGone || !c.spec.selects(k.incarnation) {
		klog.FromContext(ctx).V(4).Info("Dropped a request for a cluster that has departed")
		return reconcile.Result{}, nil
	}
	report := workqueue.AddOptions{}
	if causes := reconcile.Causes(ctx); len(causes) > 0 {
		report.Cause = causes[0]
	}
	c.inner.EnqueueWith(key{k.incarnation.tombstone, k.request}, report)
	return reconcile.Result{}, nil
}

// replace replaces old by fresh in the list of controllers. If fresh is nil, it removes old. It reports whether old was
// in the list.
func (m *Manager) replace(old, fresh *Controller) bool {
	m.mu.Lock()
	i := slices.Index(m.controllers, old)
	if i < 0 {
		m.mu.Unlock()
		return false
	}
	if fresh == nil {
		m.controllers = slices.Delete(slices.Clone(m.controllers), i, i+1)
		m.mu.Unlock()
		return true
	}
	m.controllers = slices.Clone(m.controllers)
	m.controllers[i] = fresh
	incarnations := append(m.incarnationsLocked(), m.localCluster)
	m.mu.Unlock()
	for _, inc := range incarnations {
		fresh.admit(inc) // engage admits Live clusters only.
		fresh.engage(inc)
	}
	return true
}

// addController adds a controller and makes it watch the clusters that are in the fleet.
func (m *Manager) addController(c *Controller) {
	m.mu.Lock()
	m.controllers = append(m.controllers, c)
	m.mu.Unlock()
	m.replace(c, c)
}
