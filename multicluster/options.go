package multicluster

import (
	"cmp"
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

// Options configures a [Manager]. The zero value is a fleet without clusters. Its controllers can watch the local one.
type Options struct {
	// Name names the fleet in logs, health and metrics, for processes with several fleets. Empty means "fleet".
	Name string
	// Providers announce the clusters.
	Providers []Provider
	// Owner decides which clusters this replica serves; see package shard. Nil means all.
	Owner Owner
	// EngageLocal makes controllers watch the local cluster, too. [Builder.EngageLocal] overrides it for a controller.
	EngageLocal bool
	// OnlyLeader makes clusters join only while this process leads, if the local manager elects a leader. By default
	// they join in the followers, too, which then have warm caches when they take over.
	OnlyLeader bool

	// JoinTimeout bounds one attempt to reach a cluster. Zero means 10 s.
	JoinTimeout time.Duration
	// JoinBackoff is the pause between attempts. It doubles from Min (zero means 1 s) to Max (zero means 1 min). Each
	// pause is extended by a random duration of up to its own length.
	JoinBackoff informer.Backoff
	// DrainTimeout is how long reconciles in flight may continue when a cluster leaves, before they are cancelled. Zero
	// means 10 s; negative cancels them at once. When the process stops, the local manager's GracefulTimeout applies.
	DrainTimeout time.Duration
	// MinLive is the share of the clusters that must be Live for this process to be ready: 0.9 means nine of ten.
	// Waiting clusters do not count. Zero means that the process stays ready however many clusters fail.
	MinLive float64

	// ClusterWorkers is how many workers of one controller a single cluster may occupy. Zero means half of them.
	ClusterWorkers int
	// ReleaseAfter is how long a reconcile may occupy a worker. A reconcile that takes longer, for example because its
	// cluster does not answer, continues, but its slot is released to another worker. A controller has at most 64 such
	// reconciles. They still count against ClusterWorkers. Zero means 1 s; negative means that a slot is released only
	// when its reconcile ends.
	ReleaseAfter time.Duration
	// QPS and Burst limit the requests that all clients together send to one cluster, including the lists and watches
	// of the informers. A limit in the cluster's config takes precedence. Zero means 20 and 30; a negative QPS means no
	// limit.
	QPS   float32
	Burst int

	// Scheme maps Go types to kinds. Nil means the scheme of the local manager.
	Scheme *runtime.Scheme
	// Mapper maps kinds to resources, for all clusters alike, which saves one request for each kind and cluster. Nil
	// means that each cluster is asked.
	Mapper meta.RESTMapper
	// Informers configures the informers of every cluster. The Scheme and Mapper above replace those in it.
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
	// abandonAfter is how long drain waits for reconciles whose contexts it has cancelled.
	abandonAfter = 2 * time.Second
	// releaseTimeout bounds Tenure.Release.
	releaseTimeout = 10 * time.Second
)

func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, defaultName)
	o.JoinTimeout = cmp.Or(max(o.JoinTimeout, 0), defaultJoinTimeout)
	o.JoinBackoff.Min = cmp.Or(max(o.JoinBackoff.Min, 0), time.Second)
	o.JoinBackoff.Max = cmp.Or(max(o.JoinBackoff.Max, 0), time.Minute)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, defaultDrainTimeout)
	o.ReleaseAfter = cmp.Or(o.ReleaseAfter, defaultReleaseAfter)
	o.QPS = cmp.Or(o.QPS, defaultQPS)
	o.Burst = cmp.Or(max(o.Burst, 0), defaultBurst)
	return o
}

// Owner decides which clusters this replica serves when several replicas share a fleet. Without an Owner each replica
// serves all clusters. The local cluster has no Owner. Package shard implements the interface.
type Owner interface {
	// Run does the work that concerns all clusters, such as finding the other replicas, until ctx is done. ctx is done
	// only after all tenures have been released.
	Run(ctx context.Context) error
	// Acquire waits until this replica may serve the cluster, however long that takes. The cluster's goroutine calls it
	// again after every tenure, and cancels ctx when the cluster leaves or becomes not ready. While Acquire waits, it
	// calls report with the reason ("served by replica-2") whenever the reason changes. The cluster's status shows it.
	//
	// Errors: if Acquire fails before ctx is done, it is called again, with backoff.
	Acquire(ctx context.Context, cluster ClusterInfo, report func(reason string)) (Tenure, error)
	// Leave is called when the process stops, before clusters drain, so that the other replicas can prepare to take
	// over. It must not wait.
	Leave()
}

// Tenure is a period in which this replica serves a cluster. The tenures of a cluster, by whatever replica, do not
// overlap, and between two of them no work for the cluster is in flight. A tenure ends in one of two ways:
//
//	Ending ─▶ the cluster drains: no reconcile starts, those in flight may finish   ─▶ Release
//	Lost   ─▶ reconciles in flight are cancelled at once, no further write begins   ─▶ Release
//
// The fleet calls Check before each reconcile and before every write. Writes through the cluster's own client are
// checked whatever their context is. Writes to other clusters are checked if they have the reconcile's context.
type Tenure interface {
	// Ending returns a channel, never nil, that is closed when another replica is to serve the cluster. The cluster
	// then drains.
	Ending() <-chan struct{}
	// Lost returns a channel, never nil, that is closed when this replica must not serve the cluster any more, or will
	// soon be unable to tell whether it may.
	Lost() <-chan struct{}
	// Check returns nil while a write may begin. It is called for each write, so it should compare clocks, not send a
	// request.
	Check() error
	// Release is called once, when the tenure has ended. If stuck is nil, no work of the tenure is in flight, and
	// another replica may serve the cluster. Otherwise some reconciles have not returned: Release must then let the
	// lease expire instead of giving it back. ctx bounds the call.
	Release(ctx context.Context, stuck error)
}

// ErrNotOwner is the error of a write to a cluster that this replica does not serve any more.
var ErrNotOwner = errors.New("this replica does not serve the cluster any more")

// LocalCluster is the name of the local manager's cluster.
const LocalCluster = ""

// Request names an object in a cluster. Equal Requests name the same object.
type Request struct {
	// Cluster is the name that the cluster was announced with, or [LocalCluster].
	Cluster string
	reconcile.Request
}

// RequestFor returns the Request for an object in a cluster.
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
