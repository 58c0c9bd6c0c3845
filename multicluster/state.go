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
	// Joining: being reached.
	Joining
	// Live: it answered. Controllers watch it and reconcile.
	Live
	// Draining: nothing new is begun; what is in flight may end.
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

// ClusterInfo is what a cluster is known by, without a connection to it.
type ClusterInfo struct {
	// Name and Identity are as announced. The local cluster has neither.
	Name, Identity string
	// Labels are those announced last. Read-only.
	Labels map[string]string
}

// ClusterStatus is how a cluster is.
type ClusterStatus struct {
	ClusterInfo
	// Provider is who announced it.
	Provider string
	// State is where it is in its life, Since when it came there.
	State State
	Since time.Time
	// Reason is why it is not Live, or what is wrong although it is, in words for people; empty when nothing is.
	Reason string
	// Attempts counts the attempts to reach it since it was Live last.
	Attempts int
	// InFlight is how many reconciles use it at the moment.
	InFlight int
}

// ClusterFilter says whether a cluster is meant.
//
// Concurrency: called at any time, under no lock; it must be a function of its argument alone.
type ClusterFilter func(c ClusterInfo) bool

// MatchLabels is the filter of the clusters that have all these labels.
func MatchLabels(want map[string]string) ClusterFilter {
	return MatchSelector(labels.SelectorFromSet(maps.Clone(want)))
}

// MatchSelector is the filter of the clusters whose labels s selects.
func MatchSelector(s labels.Selector) ClusterFilter {
	if misuse.IsNil(s) {
		panic("multicluster: MatchSelector: the selector is nil; labels.Everything means all clusters")
	}
	return func(c ClusterInfo) bool { return s.Matches(labels.Set(c.Labels)) }
}

// MatchNames is the filter of the clusters of these names.
func MatchNames(names ...string) ClusterFilter {
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	return func(c ClusterInfo) bool { return wanted[c.Name] }
}

// Why there is no cluster to work with.
var (
	// ErrClusterNotFound: no cluster of that name is announced.
	ErrClusterNotFound = errors.New("there is no such cluster")
	// ErrClusterNotLive: it is announced, but cannot be used now.
	ErrClusterNotLive = errors.New("the cluster is not live")
	// ErrClusterGone: it has departed since the work began; another one of the same name does not count.
	ErrClusterGone = errors.New("the cluster has departed")
)

// ClusterError says which cluster cannot be used, and why. It is an ErrClusterNotFound, ErrClusterNotLive or
// ErrClusterGone.
type ClusterError struct {
	Cluster string
	// State and Reason are those of its status; Gone when there is none.
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
