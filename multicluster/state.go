package multicluster

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/internal/misuse"
)

// State is where a cluster is in its life; the package comment has the order.
type State int

// The states.
const (
	// Waiting: announced, but not ready, or served by another replica.
	Waiting State = iota
	// Joining: the fleet tries to reach it.
	Joining
	// Live: it answered. Controllers watch it and reconcile.
	Live
	// Draining: no reconcile starts; those in flight may finish.
	Draining
	// Gone: nothing is left of it.
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
	// Name and Identity are those announced. The local cluster has neither.
	Name, Identity string
	// Labels are those announced last. Read-only.
	Labels map[string]string
}

// ClusterStatus is the condition of a cluster.
type ClusterStatus struct {
	ClusterInfo
	// Provider names the provider that announced it.
	Provider string
	// State is where it is in its life. Since is when it entered that state.
	State State
	Since time.Time
	// Reason says, in words for people, why the cluster is not Live, or what is wrong although it is. Empty when
	// nothing is.
	Reason string
	// Attempts counts the attempts to reach it since it was last Live.
	Attempts int
	// InFlight is the number of reconciles that use it now.
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
	// ErrClusterNotFound: no cluster of that name is announced.
	ErrClusterNotFound = errors.New("no such cluster")
	// ErrClusterNotLive: it is announced, but cannot be used now.
	ErrClusterNotLive = errors.New("the cluster is not live")
	// ErrClusterGone: it has departed since the work began, even if another cluster has its name now.
	ErrClusterGone = errors.New("the cluster has departed")
)

// ClusterError says which cluster cannot be used, and why. It wraps ErrClusterNotFound, ErrClusterNotLive or
// ErrClusterGone.
type ClusterError struct {
	Cluster string
	// State and Reason are those of the cluster's status; State is Gone when there is no such cluster.
	State  State
	Reason string
	Err    error
}

func (e *ClusterError) Error() string {
	switch {
	case !errors.Is(e.Err, ErrClusterNotLive):
		return fmt.Sprintf("cluster %q: %v", e.Cluster, e.Err)
	case e.Reason == "":
		return fmt.Sprintf("cluster %q: %v: %s", e.Cluster, e.Err, e.State)
	}
	return fmt.Sprintf("cluster %q: %v: %s, %s", e.Cluster, e.Err, e.State, e.Reason)
}

func (e *ClusterError) Unwrap() error { return e.Err }
