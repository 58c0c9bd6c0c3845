package multicluster

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
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

// Owner decides which clusters this replica serves when several replicas share a fleet. Without an Owner each replica
// serves all.
//
// An Owner is never asked about the local cluster. Package shard has an Owner.
type Owner interface {
	// Run does the work that concerns all clusters until ctx is done, such as finding the other replicas. ctx outlives
	// the tenures: it ends after all of them are released.
	Run(ctx context.Context) error
	// Acquire waits, as long as it takes, until this replica may serve the cluster. The cluster's goroutine calls it,
	// again after every tenure, and cancels ctx when the cluster leaves or is not ready any more. Acquire calls report
	// with the reason why the cluster is not served here ("served by replica-2"), as often as that changes. The
	// cluster's status shows it.
	//
	// Errors: after a failure without ctx being done it is called again, with backoff.
	Acquire(ctx context.Context, cluster ClusterInfo, report func(reason string)) (Tenure, error)
	// Leave is called when the process stops, before clusters drain, so that the other replicas can prepare to take the
	// clusters that will be released. It must not wait.
	Leave()
}

// Tenure is a time in which this replica serves a cluster. Between two tenures of one cluster, by any replicas, no work
// for it is in flight:
//
//	Ending ─▶ the cluster drains: no reconcile starts, those in flight may finish   ─▶ Release
//	Lost   ─▶ reconciles in flight are cancelled at once, no further write begins   ─▶ Release
//
// The fleet calls Check before it hands out a request, and before every write. For writes through the cluster's own
// client that holds whatever their context; for writes to other clusters the reconcile's context carries the check.
type Tenure interface {
	// Ending is closed when another replica is to serve the cluster. Release is called after the cluster has drained.
	// Never nil.
	Ending() <-chan struct{}
	// Lost is closed when this replica must not serve the cluster any more, or soon cannot be sure that it may. Never
	// nil.
	Lost() <-chan struct{}
	// Check returns nil while a write may begin. It is called for each write, so it must be cheap: a look at the clock,
	// not a request.
	Check() error
	// Release is called once. Without an error nothing of this tenure is in flight, and another replica may serve the
	// cluster. With an error some reconciles have not returned: then Release must not give the lease back, but let it
	// expire. ctx bounds the call.
	Release(ctx context.Context, stuck error)
}

// ErrNotOwner is the error of writes to a cluster that this replica does not serve any more.
var ErrNotOwner = errors.New("this replica does not serve the cluster any more")

// LocalCluster is the name of the cluster of the local manager.
const LocalCluster = ""

// Request names an object of a cluster. Equal Requests name the same object.
type Request struct {
	// Cluster is the name that the cluster was announced with, or [LocalCluster].
	Cluster string
	reconcile.Request
}

// RequestFor returns the Request for an object of a cluster.
func RequestFor(cluster, namespace, name string) Request {
	return Request{
		Cluster: cluster,
		Request: reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}},
	}
}

// String returns cluster://CLUSTER/NAMESPACE/NAME, or NAMESPACE/NAME for the local cluster.
//
// Source: Request.String of multicluster-runtime v0.24.1 pkg/reconcile.
func (r Request) String() string {
	if r.Cluster == LocalCluster {
		return r.Request.String()
	}
	return "cluster://" + r.Cluster + "/" + r.Request.String()
}
