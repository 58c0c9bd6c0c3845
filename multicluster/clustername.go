package multicluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/writes"
)

// clusterName is a name in the fleet: its last announcement, and the incarnation that has the name now. A name has at
// most one incarnation at a time, because a single goroutine, which runs for the name, makes and ends them. That
// goroutine also does all the waiting.
type clusterName struct {
	fleet *Manager
	name  string

	// Guarded by the fleet's lock.

	announcedBy *announcer
	// wanted is the last announcement; nil when the cluster has left.
	wanted *Announcement
	// announcedIn is the number of the provider's run that made the last announcement.
	announcedIn int
	// changed receives a token when wanted changes. Capacity 1: the announcing goroutine sends, and drops the token if
	// there is one. Never closed.
	changed chan struct{}
	// relabeled receives a token when the labels change, so that controllers apply their filters again. Capacity 1, as
	// changed. Never closed.
	relabeled chan struct{}
	// end ends the incarnation when wanted does not fit any more; nil when there is no incarnation.
	end context.CancelCauseFunc
	// serving is the announcement that the incarnation was made for; nil when there is no incarnation.
	serving *Announcement
	// incarnation has the name now; nil before its clients are made and after it has gone.
	incarnation *incarnation

	// state was entered at since, for reason. attempts counts the failed attempts to reach the cluster since it was
	// last Live.
	state    State
	since    time.Time
	reason   string
	attempts int
}

// The reasons why a cluster leaves a state. Metrics show them.
var (
	errLeft     = errors.New("left the fleet")
	errReplaced = errors.New("replaced by another cluster or endpoint")
	errNotReady = errors.New("not ready any more")
	errStopping = errors.New("the process stops")
	errHandOver = errors.New("handed over to another replica")
	errLost     = errors.New("the right to serve it was lost")
)

// newClusterName returns the record of a name that r announces for the first time.
func newClusterName(m *Manager, r *providerRun, a *Announcement) *clusterName {
	return &clusterName{
		fleet: m, name: a.Name, announcedBy: r.announcer, wanted: a, announcedIn: r.number,
		changed: make(chan struct{}, 1), relabeled: make(chan struct{}, 1),
	}
}

// sameCluster reports whether an incarnation that was made for a also fits b.
func sameCluster(a, b *Announcement) bool {
	return b.NotReady == "" && a.Identity == b.Identity && a.Namespace == b.Namespace &&
		reflect.DeepEqual(comparableConfig(a.Config), comparableConfig(b.Config))
}

// comparableConfig returns a copy of c without the fields that reflect.DeepEqual cannot compare.
func comparableConfig(c *rest.Config) *rest.Config {
	if c == nil {
		return nil
	}
	c = rest.CopyConfig(c)
	c.Transport, c.WrapTransport, c.Dial, c.Proxy = nil, nil, nil, nil
	c.RateLimiter, c.WarningHandler, c.WarningHandlerWithContext, c.AuthConfigPersister = nil, nil, nil, nil
	c.NegotiatedSerializer = nil
	return c
}

// announceLocked stores an announcement, and ends the incarnation if that does not fit the announcement. Nil means that
// the cluster leaves.
func (n *clusterName) announceLocked(a *Announcement) {
	n.wanted = a
	if n.serving != nil && n.end != nil {
		switch {
		case a == nil:
			n.end(errLeft)
		case a.NotReady != "":
			n.end(errNotReady)
		case !sameCluster(n.serving, a):
			n.end(errReplaced)
		}
	}
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// run serves one announcement after the other until the name is free or ctx is done. The end of the context work
// cancels the reconciles in flight.
func (n *clusterName) run(ctx, work context.Context) {
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "cluster", n.name))
	for ctx.Err() == nil {
		a, free := n.next()
		switch {
		case free:
			return
		case a == nil:
			n.setState(ctx, Gone, errLeft.Error())
		case a.NotReady != "":
			n.setState(ctx, Waiting, "not ready: "+a.NotReady)
			select {
			case <-n.changed:
			case <-ctx.Done():
			}
		default:
			n.serve(ctx, work, a)
		}
	}
}

// next returns the announcement to serve, or nil if the cluster has left. If the cluster has left and nothing of it
// remains, next deletes the name from the fleet and reports that it is free.
func (n *clusterName) next() (a *Announcement, free bool) {
	n.fleet.mu.Lock()
	defer n.fleet.mu.Unlock()
	if free = n.wanted == nil && (n.state == Gone || n.since.IsZero()); free {
		delete(n.fleet.names, n.name)
	}
	return n.wanted, free
}

// beginServing returns life, the context of an incarnation made for a. It ends when a newer announcement does not fit.
func (n *clusterName) beginServing(ctx context.Context, a *Announcement) (context.Context, context.CancelCauseFunc) {
	life, end := context.WithCancelCause(ctx)
	n.fleet.mu.Lock()
	defer n.fleet.mu.Unlock()
	n.serving, n.end = a, end
	if n.wanted == nil {
		end(errLeft)
	} else if !sameCluster(a, n.wanted) {
		end(errReplaced)
	}
	return life, end
}

// serve runs one incarnation, made for a, and returns when it has gone. The incarnation ends when a newer announcement
// does not fit, when its tenure ends, or when ctx is done.
func (n *clusterName) serve(ctx, work context.Context, a *Announcement) {
	life, end := n.beginServing(ctx, a)
	defer end(nil)
	tenure, err := n.acquire(life)
	if err != nil {
		return
	}
	stopWatch := func() {}
	if tenure != nil {
		var watch sync.WaitGroup
		watch.Go(func() { watchTenure(life, tenure, end) })
		stopWatch = func() { end(nil); watch.Wait() }
	}
	stuck := n.runIncarnation(life, work, a, tenure)
	stopWatch()
	if tenure != nil {
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		tenure.Release(release, stuck)
	}
}

// watchTenure ends an incarnation when its tenure ends.
func watchTenure(life context.Context, t Tenure, end context.CancelCauseFunc) {
	select {
	case <-life.Done():
	case <-t.Lost():
		end(errLost)
	case <-t.Ending():
		end(errHandOver)
	}
}

// acquire waits until this replica may serve the cluster. It fails only when life is done. Without an Owner, it returns
// no tenure.
func (n *clusterName) acquire(life context.Context) (Tenure, error) {
	owner := n.fleet.options.Owner
	if owner == nil {
		return nil, nil
	}
	retry := newBackoff(n.fleet.options.JoinBackoff)
	for {
		n.setState(life, Waiting, "waiting for the owner's decision")
		tenure, err := owner.Acquire(life, n.info(), func(why string) { n.setState(life, Waiting, why) })
		if err == nil && tenure != nil {
			return tenure, nil
		}
		if life.Err() != nil {
			return nil, context.Cause(life)
		}
		n.setState(life, Waiting, fmt.Sprintf("the owner failed: %v", err))
		if !retry.wait(life) {
			return nil, context.Cause(life)
		}
	}
}

func (n *clusterName) info() ClusterInfo {
	n.fleet.mu.Lock()
	defer n.fleet.mu.Unlock()
	info := ClusterInfo{Name: n.name}
	if n.wanted != nil {
		info.Identity, info.Labels = n.wanted.Identity, n.wanted.Labels
	}
	return info
}

// runIncarnation connects to the cluster, lets controllers work on it until life is done, and then drains and closes
// it. The error means that some reconciles did not return.
func (n *clusterName) runIncarnation(life, work context.Context, a *Announcement, tenure Tenure) (stuck error) {
	n.setState(life, Joining, "connecting")
	defer n.clearIncarnation(life)
	inc := newIncarnation(n.name, n.name+"#"+strconv.FormatUint(n.fleet.incarnations.Add(1), 10), tenure)
	target, err := n.prepare(inc, a)
	if err != nil {
		n.attemptFailed(life, fmt.Errorf("invalid config: %w", err))
		<-life.Done()
		return nil
	}
	defer target.close()
	if awaited := writes.AwaitedFrom(life); awaited != nil {
		awaited.Add(inc.record)
		defer awaited.Remove(inc.record)
	}
	caches := startCaches(life, inc.cluster)
	n.fleet.admit(n, inc)
	if n.waitForAnswer(life, target) {
		inc.setState(Live, "")
		n.setState(life, Live, "")
		n.engageControllers(life, inc)
	}
	cause := causeOf(life)
	if inc.state() == Live {
		n.setState(life, Draining, cause.Error())
		stuck = n.drain(work, inc, cause)
		caches.endSender()
	} else {
		inc.setState(Draining, cause.Error())
	}
	inc.closed.Store(true)
	inc.processStops.Store(errors.Is(cause, errStopping))
	n.fleet.tellControllers((*Controller).dismiss, inc)
	caches.end()
	inc.setState(Gone, cause.Error())
	return stuck
}

// engageControllers makes the controllers watch the cluster. It returns when life is done, but does not stop them.
func (n *clusterName) engageControllers(life context.Context, inc *incarnation) {
	select {
	case <-n.relabeled: // engage, below, uses the new labels anyway.
	default:
	}
	n.fleet.tellControllers((*Controller).engage, inc)
	for {
		select {
		case <-n.relabeled:
			n.fleet.tellControllers((*Controller).relabel, inc)
		case <-life.Done():
			return
		}
	}
}

// prepare makes the clients of an incarnation.
func (n *clusterName) prepare(inc *incarnation, a *Announcement) (*prober, error) {
	if err := n.fleet.connect(inc, a); err != nil {
		return nil, err
	}
	return newProber(inc.cluster.config)
}

// causeOf returns the reason why life is done.
func causeOf(life context.Context) error {
	cause := context.Cause(life)
	for _, known := range []error{errLeft, errReplaced, errNotReady, errHandOver, errLost} {
		if errors.Is(cause, known) {
			return known
		}
	}
	return errStopping
}

// clearIncarnation records that the name has no incarnation any more.
func (n *clusterName) clearIncarnation(life context.Context) {
	n.fleet.mu.Lock()
	n.incarnation, n.serving, n.end = nil, nil, nil
	n.fleet.mu.Unlock()
	n.setState(life, Gone, causeOf(life).Error())
}

// waitForAnswer probes the cluster until it answers or life is done. It reports whether the cluster answered.
func (n *clusterName) waitForAnswer(life context.Context, target *prober) bool {
	retry := newBackoff(n.fleet.options.JoinBackoff)
	for {
		attempt, cancel := context.WithTimeout(life, n.fleet.options.JoinTimeout)
		err := target.probe(attempt)
		cancel()
		if err == nil && life.Err() == nil {
			return true
		}
		if life.Err() != nil {
			return false
		}
		n.attemptFailed(life, err)
		if !retry.wait(life) {
			return false
		}
	}
}

// drain waits for the reconciles in flight, as long as the options and the process allow. If the tenure is lost, it
// does not wait: another replica may be about to serve the cluster.
func (n *clusterName) drain(work context.Context, inc *incarnation, cause error) error {
	deadline, cancel := context.WithCancel(work)
	defer cancel()
	switch timeout := n.fleet.options.DrainTimeout; {
	case errors.Is(cause, errLost) || timeout < 0 && !errors.Is(cause, errStopping):
		cancel()
	case !errors.Is(cause, errStopping):
		defer time.AfterFunc(timeout, cancel).Stop()
	}
	if inc.tenure != nil {
		returned := make(chan struct{}) // closed when drain returns; never sent on
		defer close(returned)
		go func() {
			select {
			case <-inc.tenure.Lost():
				cancel()
			case <-returned:
			}
		}()
	}
	err := inc.drain(deadline.Done(), cause.Error())
	if err != nil {
		klog.FromContext(work).Error(err, "Cluster leaves with reconciles still in flight", "cluster", n.name)
	}
	return err
}
