package multicluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/misuse"
)

// Transition is a change of state and its reason. The reason has one of a few fixed wordings, so that it can be the
// label of a metric.
type Transition struct {
	To     State
	Reason string
}

// Stats counts the states and requests of a fleet's clusters.
type Stats struct {
	// Clusters is the number of clusters in each state now.
	Clusters map[State]int
	// Transitions counts changes of state since the start.
	Transitions map[Transition]uint64
	// Left counts how often clusters left a state, and Spent is the total time that they had spent in it.
	Spent map[State]time.Duration
	Left  map[State]uint64
	// Attempts counts failed attempts to reach a cluster.
	Attempts uint64
	// Dropped counts requests that were not reconciled because their cluster had departed or was no longer selected.
	Dropped uint64
}

// counts has the counters of Stats that setState and attemptFailed increment. Guarded by the fleet's lock.
type counts struct {
	transitions map[Transition]uint64
	spent       map[State]time.Duration
	left        map[State]uint64
	attempts    uint64
}

func newCounts() counts {
	return counts{transitions: map[Transition]uint64{}, spent: map[State]time.Duration{}, left: map[State]uint64{}}
}

// Stats returns a snapshot of the counters.
func (m *Manager) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Stats{
		Clusters:    map[State]int{},
		Transitions: maps.Clone(m.counts.transitions),
		Spent:       maps.Clone(m.counts.spent),
		Left:        maps.Clone(m.counts.left),
		Attempts:    m.counts.attempts,
		Dropped:     m.dropped.Load(),
	}
	for _, clusterName := range m.names {
		s.Clusters[clusterName.state]++
	}
	return s
}

// setState moves a clusterName to a state, or changes only the reason of its state. It logs each new state once.
func (n *clusterName) setState(ctx context.Context, to State, reason string) {
	m := n.fleet
	m.mu.Lock()
	from, was, now := n.state, n.since, time.Now()
	if from == to && !was.IsZero() {
		n.reason = reason
		m.mu.Unlock()
		return
	}
	spent := time.Duration(0)
	if !was.IsZero() {
		spent = now.Sub(was)
		m.counts.spent[from] += spent
		m.counts.left[from]++
	}
	n.state, n.since, n.reason = to, now, reason
	if to == Live {
		n.attempts = 0
	}
	m.counts.transitions[Transition{To: to, Reason: metricReason(to, reason)}]++
	m.mu.Unlock()
	logger := klog.FromContext(ctx)
	if spent > 0 {
		logger = logger.WithValues("before", from, "duration", spent)
	}
	logger.Info("Cluster changed state", "state", to, "reason", reason)
}

// metricReason returns the wording under which a reason is counted. A free text is not used, because each text would
// make a metric series of its own.
func metricReason(to State, reason string) string {
	switch to {
	case Live:
		return "answered"
	case Joining:
		return "announced"
	case Waiting:
		if strings.HasPrefix(reason, "not ready: ") {
			return "not ready"
		}
		return "not served here"
	}
	return reason // one of those that causeOf returns
}

// attemptFailed records a failed attempt. It logs a new error at level 0 and a repeated one at level 4.
func (n *clusterName) attemptFailed(ctx context.Context, err error) {
	m := n.fleet
	m.mu.Lock()
	isNew := n.reason != err.Error()
	n.reason = err.Error()
	n.attempts++
	attempts, incarnation := n.attempts, n.incarnation
	m.counts.attempts++
	m.mu.Unlock()
	if incarnation != nil {
		incarnation.setState(Joining, err.Error())
	}
	logger := klog.FromContext(ctx)
	if !isNew {
		logger = logger.V(4)
	}
	logger.Info("Cannot reach cluster; trying again", "attempt", attempts, "err", err)
}

// Status returns the condition of a cluster.
//
// Errors: ErrClusterNotFound.
func (m *Manager) Status(name string) (ClusterStatus, error) {
	m.mu.Lock()
	n := m.names[name]
	if n == nil {
		m.mu.Unlock()
		return ClusterStatus{}, &clusterError{Cluster: name, State: Gone, Err: ErrClusterNotFound}
	}
	status, incarnation := n.statusLocked(), n.incarnation
	m.mu.Unlock()
	return status.withIncarnation(incarnation), nil
}

// Clusters returns the conditions of all clusters but the local one, ordered by name.
func (m *Manager) Clusters() []ClusterStatus {
	m.mu.Lock()
	statuses, incarnations := make([]ClusterStatus, 0, len(m.names)), make([]*incarnation, 0, len(m.names))
	for _, n := range m.names {
		statuses = append(statuses, n.statusLocked())
		incarnations = append(incarnations, n.incarnation)
	}
	m.mu.Unlock()
	for i := range statuses {
		statuses[i] = statuses[i].withIncarnation(incarnations[i])
	}
	slices.SortFunc(statuses, func(a, b ClusterStatus) int { return cmp.Compare(a.Name, b.Name) })
	return statuses
}

func (n *clusterName) statusLocked() ClusterStatus {
	status := ClusterStatus{
		ClusterInfo: ClusterInfo{Name: n.name},
		State:       n.state, Since: n.since, Reason: n.reason, Attempts: n.attempts, Provider: n.announcedBy.name,
	}
	if n.wanted != nil {
		status.Identity, status.Labels = n.wanted.Identity, n.wanted.Labels
	}
	return status
}

// withIncarnation adds what only the incarnation knows: the reconciles in flight and, for a Live cluster whose server
// does not answer, the error.
func (c ClusterStatus) withIncarnation(inc *incarnation) ClusterStatus {
	if inc == nil {
		return c
	}
	c.InFlight = inc.inFlight()
	if c.State != Live {
		return c
	}
	for _, h := range inc.cluster.informers.Health() {
		if h.Err != nil {
			c.Reason = fmt.Sprintf("%v, for %v", h.Err, time.Since(h.Since).Round(time.Second))
			break
		}
	}
	return c
}

// Health returns nil while the fleet runs, every provider has announced its clusters, and as many clusters are Live as
// Options.MinLive requires. [Manager.Note] reports the other problems.
func (m *Manager) Health() error {
	m.mu.Lock()
	var wrong []error
	if m.start == nil {
		wrong = append(wrong, errors.New("not running"))
	}
	for _, a := range m.announcers {
		switch {
		case a.synced || m.start == nil:
		case a.err != nil:
			wrong = append(wrong, fmt.Errorf("provider %s: %w", a.name, a.err))
		default:
			wrong = append(wrong, fmt.Errorf("provider %s has not listed its clusters yet", a.name))
		}
	}
	live, wanted := 0, 0
	for _, n := range m.names {
		if n.state == Live {
			live++
		}
		if n.state != Waiting {
			wanted++
		}
	}
	m.mu.Unlock()
	if float64(live) < m.options.MinLive*float64(wanted) {
		wrong = append(wrong, errors.New(m.Note()))
	}
	return errors.Join(wrong...)
}

// maxNoted is how many clusters are named in a note.
const maxNoted = 3

// Note describes, in one line for people, the clusters and what the providers cannot announce: "48 of 50 clusters are
// live; a: Joining, connection refused; b: …". /readyz shows it.
func (m *Manager) Note() string {
	all := m.Clusters()
	live, problems := 0, []string{}
	for _, c := range all {
		if c.State == Live {
			live++
		}
		if c.State != Live || c.Reason != "" {
			problems = append(problems, c.describe())
		}
	}
	for _, a := range m.announcers {
		if err := a.provider.Health(); err != nil {
			problems = append(problems, fmt.Sprintf("provider %s: %v", a.name, err))
		}
	}
	if more := len(problems) - maxNoted; more > 0 {
		problems = append(problems[:maxNoted], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(append([]string{fmt.Sprintf("%d of %d clusters are live", live, len(all))}, problems...), "; ")
}

func (c ClusterStatus) describe() string {
	text := c.Name + ": " + c.State.String()
	if c.Reason != "" {
		text += ", " + c.Reason
	}
	if c.State == Live {
		return text
	}
	return fmt.Sprintf("%s, since %v", text, time.Since(c.Since).Round(time.Second))
}

// State is a state in the life of a cluster; the package comment has the order.
type State int

// The states.
const (
	// Waiting: the cluster is announced, but it is not ready, or another replica serves it.
	Waiting State = iota
	// Joining: the fleet tries to reach the cluster.
	Joining
	// Live: the cluster has answered. Controllers watch it and reconcile.
	Live
	// Draining: no reconcile starts; those in flight may finish.
	Draining
	// Gone: nothing of the cluster is left in the process.
	Gone
)

// States are all states, in order.
var States = []State{Waiting, Joining, Live, Draining, Gone}

func (s State) String() string {
	switch s {
	case Waiting:
		return "Waiting"
	case Joining:
		return "Joining"
	case Live:
		return "Live"
	case Draining:
		return "Draining"
	}
	return "Gone"
}

// ClusterInfo describes a cluster without a connection to it.
type ClusterInfo struct {
	// Name and Identity are those of the announcement. The local cluster has neither.
	Name, Identity string
	// Labels are those announced last. Read-only.
	Labels map[string]string
}

// ClusterStatus is the condition of a cluster.
type ClusterStatus struct {
	ClusterInfo
	// Provider names the provider that announced the cluster.
	Provider string
	// Since is when the cluster entered State.
	State State
	Since time.Time
	// Reason is why the cluster is not Live, or what is wrong with a Live one, in words for people.
	Reason string
	// Attempts counts the failed attempts to reach the cluster since it was last Live.
	Attempts int
	// InFlight is the number of reconciles that use the cluster now.
	InFlight int
}

// MatchLabels returns a filter that selects the clusters that have all these labels.
func MatchLabels(want map[string]string) func(ClusterInfo) bool {
	return MatchSelector(labels.SelectorFromSet(maps.Clone(want)))
}

// MatchSelector returns a filter that selects the clusters whose labels match s.
func MatchSelector(s labels.Selector) func(ClusterInfo) bool {
	if misuse.IsNil(s) {
		panic("multicluster: MatchSelector: the selector is nil; labels.Everything means all clusters")
	}
	return func(c ClusterInfo) bool { return s.Matches(labels.Set(c.Labels)) }
}

// The reasons why a cluster cannot be used.
var (
	// ErrClusterNotFound means that no cluster of that name is announced.
	ErrClusterNotFound = errors.New("no such cluster")
	// ErrClusterNotLive means that the cluster is announced, but cannot be used now.
	ErrClusterNotLive = errors.New("the cluster is not live")
	// ErrClusterGone means that the cluster has departed since the work began. Another cluster may have its name now.
	ErrClusterGone = errors.New("the cluster has departed")
)

// clusterError is the error of a cluster that cannot be used. It wraps ErrClusterNotFound, ErrClusterNotLive or
// ErrClusterGone.
type clusterError struct {
	Cluster string
	// State and Reason are those of the cluster's status. State is Gone when there is no such cluster.
	State  State
	Reason string
	Err    error
}

func (e *clusterError) Error() string {
	switch {
	case !errors.Is(e.Err, ErrClusterNotLive):
		return fmt.Sprintf("cluster %q: %v", e.Cluster, e.Err)
	case e.Reason == "":
		return fmt.Sprintf("cluster %q: %v: %s", e.Cluster, e.Err, e.State)
	}
	return fmt.Sprintf("cluster %q: %v: %s, %s", e.Cluster, e.Err, e.State, e.Reason)
}

func (e *clusterError) Unwrap() error { return e.Err }
