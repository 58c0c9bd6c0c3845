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
	// Name names the fleet in logs, health and metrics, for processes with several fleets. Empty means "fleet".
	Name string
	// Providers announce the clusters.
	Providers []Provider
	// Owner decides which clusters this replica serves; see package shard. Nil means all.
	Owner Owner
	// EngageLocal makes controllers also watch the local cluster, unless their builder says otherwise.
	EngageLocal bool
	// OnlyLeader makes only the leader join clusters, if the local manager elects one. Otherwise followers join them,
	// too, and have warm caches when they take over.
	OnlyLeader bool

	// JoinTimeout bounds one attempt to reach a cluster. Zero means 10 s.
	JoinTimeout time.Duration
	// JoinBackoff is the pause between attempts. It doubles from Min (0 means 1 s) to Max (0 means 1 min). Each pause
	// is extended by a random part of up to its own length.
	JoinBackoff informer.Backoff
	// DrainTimeout is how long reconciles in flight may go on when a cluster leaves, before they are cancelled. Zero
	// means 10 s; negative cancels them at once. When the process stops, the local manager's GracefulTimeout applies.
	DrainTimeout time.Duration
	// MinLive is the share of the clusters that must be Live for this process to be ready: 0.9 is nine of ten. Waiting
	// clusters do not count. Zero: dead clusters are reported, but the process stays ready.
	MinLive float64

	// ClusterWorkers is the most workers of one controller that one cluster may occupy. Zero means half of them.
	ClusterWorkers int
	// ReleaseAfter is how long a reconcile keeps a worker from the other clusters. If it takes longer, as when its
	// cluster does not answer, its slot is released and another worker takes its place (up to 64 of them). It still
	// counts against ClusterWorkers. Zero means 1 s; negative: the slot is released when the reconcile ends.
	ReleaseAfter time.Duration
	// QPS and Burst limit the requests of all clients to one cluster, lists and watches of the informers included,
	// unless the cluster's config sets a limit. Zero means 20 and 30; a negative QPS means no limit.
	QPS   float32
	Burst int

	// Scheme maps Go types to kinds; nil means the local manager's.
	Scheme *runtime.Scheme
	// Mapper maps kinds to resources in all clusters. It saves one request for each kind and cluster. Nil asks each
	// cluster.
	Mapper meta.RESTMapper
	// Informers configures the informers of every cluster. Its Scheme and Mapper are overwritten by those above.
	Informers informer.FactoryOptions
	// Caches restricts which objects of some kinds are cached in every cluster, as in manager.Options.
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
