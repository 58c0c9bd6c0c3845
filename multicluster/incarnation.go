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
// mistaken for those of another one.
type incarnation struct {
	name  string
	group string // the name of its lane in queues: no two incarnations have the same
	// tenure is the time in which this replica serves the cluster; nil where nobody has to be asked.
	tenure Tenure
	// cluster is what users see of it. Set before anybody else knows the incarnation.
	cluster *Cluster
	// writes are those to the cluster, for who runs the process until it is idle; nil when nobody does.
	record *ownwrites.Record

	// tombstone stands for it in requests that are reported after it has departed, and holds nothing. Nil for a
	// tombstone.
	tombstone *incarnation

	// closed: no request is sent any more.
	closed atomic.Bool
	// stays: the process stops to use the cluster, which has not departed. Set before controllers dismiss it.
	stays atomic.Bool

	mu  sync.Mutex
	now State
	// reason is why it is not Live.
	reason string
	// uses are the reconciles that use the cluster, by number, with what cancels them. Invariant: none begins unless
	// Live.
	uses map[uint64]context.CancelCauseFunc
	last uint64
	// idle is closed when it is not Live any more and uses is empty. Made when the draining begins; nobody sends.
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

// away says that the cluster has not answered for long to who watches it.
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

// unusable says why the cluster cannot be used; nil when it can.
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

// usable is the cluster for who has entered it: also while it drains.
func (m *incarnation) usable() (*Cluster, error) {
	if m.closed.Load() {
		return nil, &ClusterError{Cluster: m.name, State: Gone, Err: ErrClusterGone}
	}
	return m.cluster, nil
}

// mayWrite is nil while this replica serves the cluster.
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

// enter begins to use the cluster. cancel is called if leave was not by the time the draining is over.
//
// Errors: a [ClusterError]; that of the tenure.
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

// drain ends intake, waits until nothing is in flight, at most until patience ends, and cancels what is then.
//
// Errors: when something does not return although it was cancelled.
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

// fence wraps the transport of a cluster: nothing is sent when it has departed, and nothing is written unless this
// replica serves it.
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
