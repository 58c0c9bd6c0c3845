package multicluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/ownwrites"
)

// incarnation is a cluster from when it joins the fleet until it leaves. Requests carry it, so that they cannot be
// mistaken for requests of another incarnation.
type incarnation struct {
	name  string
	group string // The name of its lane in queues, unique among incarnations.
	// tenure is this replica's tenure of the cluster; nil when the fleet has no Owner.
	tenure Tenure
	// cluster is the incarnation as users see it. It is set before anything else knows the incarnation.
	cluster *Cluster
	// record has the process's own writes to the cluster.
	record *ownwrites.Record

	// tombstone takes its place in requests that are reported after it has departed. It holds no memory of the cluster.
	// A tombstone has none itself.
	tombstone *incarnation

	// closed reports whether the cluster has departed: every request to its server fails.
	closed atomic.Bool
	// stays reports that the process stops using the cluster, although the cluster has not departed. It is set before
	// controllers dismiss the cluster.
	stays atomic.Bool

	mu  sync.Mutex
	now State
	// reason is why it is not Live.
	reason string
	// uses has the cancel functions of the reconciles that use the cluster, by number. Invariant: a reconcile is added
	// only while the cluster is Live.
	uses map[uint64]context.CancelCauseFunc
	last uint64
	// idle is made when the draining begins, and closed once uses is empty. Nobody sends.
	idle chan struct{}
}

func newIncarnation(name, group string, tenure Tenure) *incarnation {
	tombstone := &incarnation{name: name, group: group, now: Gone}
	tombstone.closed.Store(true)
	return &incarnation{name: name, group: group, tenure: tenure, tombstone: tombstone}
}

func (m *incarnation) state() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *incarnation) inFlight() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.uses)
}

// away reports whether a watch of the cluster has failed for longer than long.
func (m *incarnation) away(long time.Duration) bool {
	return slices.ContainsFunc(m.cluster.informers.Health(),
		func(h informer.Health) bool { return h.Err != nil && time.Since(h.Since) > long })
}

// set changes the state, or the reason for it.
func (m *incarnation) set(now State, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now, m.reason = now, reason
}

// unusable returns why the cluster cannot be used; nil when it can.
func (m *incarnation) unusable() error {
	m.mu.Lock()
	err := m.notLiveLocked()
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return m.mayWrite()
}

func (m *incarnation) notLiveLocked() error {
	switch {
	case m.now >= Draining:
		return &ClusterError{Cluster: m.name, State: m.now, Err: ErrClusterGone}
	case m.now != Live:
		return &ClusterError{Cluster: m.name, State: m.now, Reason: m.reason, Err: ErrClusterNotLive}
	}
	return nil
}

// usable returns the cluster for a reconcile that has entered it, even while the cluster drains.
func (m *incarnation) usable() (*Cluster, error) {
	if m.closed.Load() {
		return nil, &ClusterError{Cluster: m.name, State: Gone, Err: ErrClusterGone}
	}
	return m.cluster, nil
}

// mayWrite returns nil while this replica serves the cluster.
func (m *incarnation) mayWrite() error {
	if m.closed.Load() {
		return &ClusterError{Cluster: m.name, State: Gone, Err: ErrClusterGone}
	}
	if m.tenure == nil {
		return nil
	}
	if err := m.tenure.Check(); err != nil {
		return fmt.Errorf("cluster %q: %w: %w", m.name, ErrNotOwner, err)
	}
	return nil
}

// enter registers a reconcile that uses the cluster. cancel is called if the draining ends before leave was called.
//
// Errors: a [ClusterError]; the error of the tenure's Check.
func (m *incarnation) enter(cancel context.CancelCauseFunc) (leave func(), err error) {
	if err := m.mayWrite(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.notLiveLocked(); err != nil {
		return nil, err
	}
	if m.uses == nil {
		m.uses = map[uint64]context.CancelCauseFunc{}
	}
	m.last++
	number := m.last
	m.uses[number] = cancel
	return func() { m.leave(number) }, nil
}

func (m *incarnation) leave(number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.uses, number)
	m.reportIdleLocked()
}

func (m *incarnation) reportIdleLocked() {
	if m.idle != nil && len(m.uses) == 0 {
		close(m.idle)
		m.idle = nil
	}
}

// drain lets no further reconcile enter, waits until those in flight have returned or patience ends, and then cancels
// the rest.
//
// Errors: when reconciles do not return after they were cancelled.
func (m *incarnation) drain(patience <-chan struct{}, reason string) error {
	m.mu.Lock()
	idle := make(chan struct{})
	m.now, m.reason, m.idle = Draining, reason, idle
	m.reportIdleLocked()
	m.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-patience:
	}
	for _, cancel := range m.cancels() {
		cancel(&ClusterError{Cluster: m.name, State: Draining, Err: ErrClusterGone})
	}
	timer := time.NewTimer(abandonAfter)
	defer timer.Stop()
	select {
	case <-idle:
		return nil
	case <-timer.C:
		return fmt.Errorf("%d reconciles did not return %v after they were cancelled", m.inFlight(), abandonAfter)
	}
}

func (m *incarnation) cancels() []context.CancelCauseFunc {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]context.CancelCauseFunc, 0, len(m.uses))
	for _, cancel := range m.uses {
		all = append(all, cancel)
	}
	return all
}

// fence wraps the transport of a cluster. After the cluster has departed, every request fails. Writes also fail unless
// this replica serves the cluster.
func (m *incarnation) fence(next http.RoundTripper) http.RoundTripper { return &fence{m, next} }

type fence struct {
	incarnation *incarnation
	next        http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f *fence) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	switch reads := r.Method == http.MethodGet || r.Method == http.MethodHead; {
	case f.incarnation.closed.Load():
		err = &ClusterError{Cluster: f.incarnation.name, State: Gone, Err: ErrClusterGone}
	case !reads:
		err = f.incarnation.mayWrite()
	}
	if err == nil {
		return f.next.RoundTrip(r)
	}
	if r.Body != nil {
		err = errors.Join(err, r.Body.Close()) // a transport always closes it
	}
	return nil, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (f *fence) WrappedRoundTripper() http.RoundTripper { return f.next }
