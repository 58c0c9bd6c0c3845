package multicluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
)

// Options configures a [Manager]. The zero value is a fleet of no clusters, whose controllers may engage the local one.
type Options struct {
	// Name names the fleet in logs, health and metrics, where a process has several. Empty means "fleet".
	Name string
	// Providers say which clusters there are.
	Providers []Provider
	// Owner decides which of them this replica serves; see package shard. Nil: all.
	Owner Owner
	// EngageLocal makes controllers watch the local cluster, too, unless their builder says otherwise.
	EngageLocal bool
	// OnlyLeader has the clusters joined by the leader alone, if the local manager elects one. Otherwise followers
	// join, too, and have warm caches when they take over.
	OnlyLeader bool

	// JoinTimeout bounds one attempt to reach a cluster. Zero means 10 s.
	JoinTimeout time.Duration
	// JoinBackoff is how long it is until the next attempt: it doubles from Min, 0 being 1 s, to Max, 0 being 1 min,
	// each up to twice as long by chance.
	JoinBackoff informer.Backoff
	// DrainTimeout is how long what is in flight may go on when a cluster leaves, before it is cancelled. Zero means
	// 10 s; negative: it is cancelled at once. When the process stops, the local manager's GracefulTimeout counts.
	DrainTimeout time.Duration
	// UnreadyWithout makes this process unready while fewer clusters are Live than this share of those that should be
	// (0.9 is nine of ten). Zero: dead clusters are told of, and change nothing.
	UnreadyWithout float64

	// ClusterWorkers is how many workers of one controller one cluster keeps busy at most. Zero means half of them.
	ClusterWorkers int
	// ReleaseAfter is how long a reconcile keeps a worker from the other clusters: if it takes longer, as it does
	// when its cluster does not answer, its slot is released, and another worker takes its place (up to 64 of them).
	// It counts for ClusterWorkers as before. Zero means 1 s; negative: the slot is released when the reconcile ends.
	ReleaseAfter time.Duration
	// QPS and Burst limit the requests to one cluster by its clients, watches and lists of the informers included,
	// where the cluster's config does not say. Zero means 20 and 30; a negative QPS is no limit.
	QPS   float32
	Burst int

	// Scheme tells the kinds of Go types; nil is the local manager's.
	Scheme *runtime.Scheme
	// Mapper tells the resources of kinds in all clusters; nil asks each cluster. It spares a request per kind and
	// cluster.
	Mapper meta.RESTMapper
	// Informers configures the informers of every cluster. Its Scheme and Mapper are those above.
	Informers informer.FactoryOptions
	// Caches restricts what is cached of some kinds in every cluster, as in manager.Options.
	Caches []client.CacheOf
}

const (
	defaultName         = "fleet"
	defaultJoinTimeout  = 10 * time.Second
	defaultDrainTimeout = 10 * time.Second
	defaultReleaseAfter = time.Second
	defaultQPS          = 20
	defaultBurst        = 30
	// abandonAfter is how long a reconcile may take to return once its context is cancelled.
	abandonAfter = 2 * time.Second
	// releaseTimeout bounds Tenure.Release.
	releaseTimeout = 10 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = defaultName
	}
	if o.JoinTimeout <= 0 {
		o.JoinTimeout = defaultJoinTimeout
	}
	if o.JoinBackoff.Min <= 0 {
		o.JoinBackoff.Min = time.Second
	}
	if o.JoinBackoff.Max <= 0 {
		o.JoinBackoff.Max = time.Minute
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = defaultDrainTimeout
	}
	if o.ReleaseAfter == 0 {
		o.ReleaseAfter = defaultReleaseAfter
	}
	if o.QPS == 0 {
		o.QPS = defaultQPS
	}
	if o.Burst <= 0 {
		o.Burst = defaultBurst
	}
	return o
}
