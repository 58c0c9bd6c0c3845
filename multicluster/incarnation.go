package multicluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/writes"
)

// incarnation is a cluster between joining the fleet and leaving it. Requests in queues refer to their incarnation, so
// they never reach another cluster of the same name.
type incarnation struct {
	name  string
	group string // the name of its lane in queues, unique among incarnations
	// tenure is this replica's tenure of the cluster; nil when the fleet has no Owner.
	tenure Tenure
	// cluster is the form in which users see the incarnation. It is set before the incarnation is published.
	cluster *Cluster
	// record has this process's own writes to the cluster.
	record *writes.Record

	// tombstone stands for the incarnation in requests that are reported after it has departed. It keeps nothing of the
	// cluster in memory. In a tombstone, tombstone is nil.
	tombstone *incarnation

	// closed means that the cluster has departed: every request to its server fails.
	closed atomic.Bool
	// processStops means that the incarnation ends only because the process stops. It is set before controllers dismiss
	// the cluster, so that they do not call onGone.
	processStops atomic.Bool

	mu      sync.Mutex
	current State
	// reason is why it is not Live.
	reason string
	// reconciles has the cancel functions of the reconciles that use the cluster, by ID. Invariant: a reconcile is
	// added only while the cluster is Live.
	reconciles map[uint64]context.CancelCauseFunc
	lastID     uint64
	// idle is made when draining begins, and closed once reconciles is empty. Never sent on.
	idle chan struct{}
}

func newIncarnation(name, group string, tenure Tenure) *incarnation {
	tombstone := &incarnation{name: name, group: group, current: Gone}
	tombstone.closed.Store(true)
	return &incarnation{name: name, group: group, tenure: tenure, tombstone: tombstone}
}

func (inc *incarnation) state() State {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	return inc.current
}

func (inc *incarnation) inFlight() int {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	return len(inc.reconciles)
}

// unreachableFor reports whether a watch of the cluster has been failing for longer than limit.
func (inc *incarnation) unreachableFor(limit time.Duration) bool {
	return slices.ContainsFunc(inc.cluster.informers.Health(),
		func(h informer.Health) bool { return h.Err != nil && time.Since(h.Since) > limit })
}

// setState changes the state, or only its reason.
func (inc *incarnation) setState(now State, reason string) {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	inc.current, inc.reason = now, reason
}

// unusable returns why the cluster cannot be used; nil when it can.
func (inc *incarnation) unusable() error {
	inc.mu.Lock()
	err := inc.notLiveLocked()
	inc.mu.Unlock()
	if err != nil {
		return err
	}
	return inc.checkWrite()
}

func (inc *incarnation) notLiveLocked() error {
	switch {
	case inc.current >= Draining:
		return &clusterError{Cluster: inc.name, State: inc.current, Err: ErrClusterGone}
	case inc.current != Live:
		return &clusterError{Cluster: inc.name, State: inc.current, Reason: inc.reason, Err: ErrClusterNotLive}
	}
	return nil
}

// usable returns the cluster to a reconcile that has entered it. It works while the cluster drains, too.
func (inc *incarnation) usable() (*Cluster, error) {
	if inc.closed.Load() {
		return nil, &clusterError{Cluster: inc.name, State: Gone, Err: ErrClusterGone}
	}
	return inc.cluster, nil
}

// checkWrite returns nil while a write to the cluster may begin: it has not departed, and this replica serves it.
func (inc *incarnation) checkWrite() error {
	if inc.closed.Load() {
		return &clusterError{Cluster: inc.name, State: Gone, Err: ErrClusterGone}
	}
	if inc.tenure == nil {
		return nil
	}
	if err := inc.tenure.Check(); err != nil {
		return fmt.Errorf("cluster %q: %w: %w", inc.name, ErrNotOwner, err)
	}
	return nil
}

// enter registers a reconcile that uses the cluster. The reconcile calls leave when it ends. If the cluster has to
// leave earlier, drain calls cancel.
//
// Errors: [ErrClusterGone]; the error of the tenure's Check.
func (inc *incarnation) enter(cancel context.CancelCauseFunc) (leave func(), err error) {
	if err := inc.checkWrite(); err != nil {
		return nil, err
	}
	inc.mu.Lock()
	defer inc.mu.Unlock()
	if err := inc.notLiveLocked(); err != nil {
		return nil, err
	}
	if inc.reconciles == nil {
		inc.reconciles = map[uint64]context.CancelCauseFunc{}
	}
	inc.lastID++
	id := inc.lastID
	inc.reconciles[id] = cancel
	return func() { inc.leave(id) }, nil
}

func (inc *incarnation) leave(id uint64) {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	delete(inc.reconciles, id)
	inc.reportIdleLocked()
}

func (inc *incarnation) reportIdleLocked() {
	if inc.idle != nil && len(inc.reconciles) == 0 {
		close(inc.idle)
		inc.idle = nil
	}
}

// drain refuses further reconciles and waits for those in flight until deadline is closed. It then cancels the rest,
// and gives them a moment to return.
//
// Errors: some reconciles did not return after they were cancelled.
func (inc *incarnation) drain(deadline <-chan struct{}, reason string) error {
	inc.mu.Lock()
	idle := make(chan struct{})
	inc.current, inc.reason, inc.idle = Draining, reason, idle
	inc.reportIdleLocked()
	inc.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-deadline:
	}
	for _, cancel := range inc.cancels() {
		cancel(&clusterError{Cluster: inc.name, State: Draining, Err: ErrClusterGone})
	}
	timer := time.NewTimer(abandonAfter)
	defer timer.Stop()
	select {
	case <-idle:
		return nil
	case <-timer.C:
		return fmt.Errorf("%d reconciles did not return %v after they were cancelled", inc.inFlight(), abandonAfter)
	}
}

func (inc *incarnation) cancels() []context.CancelCauseFunc {
	inc.mu.Lock()
	defer inc.mu.Unlock()
	return slices.Collect(maps.Values(inc.reconciles))
}

// fence wraps the transport of a cluster's clients. All requests fail after the cluster has departed, and writes fail
// while this replica does not serve it.
func (inc *incarnation) fence(next http.RoundTripper) http.RoundTripper { return &fence{inc, next} }

type fence struct {
	incarnation *incarnation
	next        http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f *fence) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	switch reads := r.Method == http.MethodGet || r.Method == http.MethodHead; {
	case f.incarnation.closed.Load():
		err = &clusterError{Cluster: f.incarnation.name, State: Gone, Err: ErrClusterGone}
	case !reads:
		err = f.incarnation.checkWrite()
	}
	if err == nil {
		return f.next.RoundTrip(r)
	}
	if r.Body != nil {
		err = errors.Join(err, r.Body.Close()) // a RoundTripper must close the body, also on errors
	}
	return nil, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (f *fence) WrappedRoundTripper() http.RoundTripper { return f.next }
