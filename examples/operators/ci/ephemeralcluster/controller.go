package ephemeralcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// The names of the controllers: one of EphemeralClusters, one of ProwJobs whose EphemeralCluster is gone.
const (
	Name        = "ephemeral-cluster-provisioner"
	OrphansName = "ephemeral-cluster-orphans"
)

// The only namespace in which EphemeralClusters are handled, and the namespace of their ProwJobs.
const (
	Namespace    = "ephemeral-cluster"
	JobNamespace = "ci"
)

// Options configure the controllers. The zero value works.
type Options struct {
	// Polling is the time between two checks of a build cluster, which is not watched. Zero means a minute.
	Polling time.Duration
	// TimeToLive is the age at which a cluster is torn down if its spec does not set one. Zero means never.
	TimeToLive time.Duration
	// BuildCluster is where jobs run. Empty means build01.
	BuildCluster string
	// CLIImage is the tag of the image with the oc command, which every job gets. Empty means ocp/4.21:cli.
	CLIImage string
	// Profiles are the existing cluster profiles, with the owners that may use them. A profile without owners is open
	// to all.
	Profiles map[string][]Owner
	// PrivilegedTenants may use every profile.
	PrivilegedTenants []string
	// Metrics, if not nil, are updated every MetricsInterval. Zero means a minute.
	Metrics         *Metrics
	MetricsInterval time.Duration
}

func (o Options) withDefaults() Options {
	o.Polling = cmp.Or(o.Polling, time.Minute)
	o.BuildCluster = cmp.Or(o.BuildCluster, "build01")
	o.CLIImage = cmp.Or(o.CLIImage, "ocp/4.21:cli")
	o.MetricsInterval = cmp.Or(o.MetricsInterval, time.Minute)
	return o
}

// provisioner reconciles EphemeralClusters.
type provisioner struct {
	hub client.Client
	// builds holds the clients of the build clusters, by name.
	builds map[string]client.Client
	o      Options
}

// Add adds the controllers to the hub of the fleet.
func Add(f *fleet.Fleet, o Options) error {
	o = o.withDefaults()
	p := &provisioner{hub: f.Hub.Client, builds: map[string]client.Client{}, o: o}
	for _, c := range f.All() {
		p.builds[c.Name] = c.Client
	}
	here := predicate.Matching(func(obj informer.Object) bool { return obj.GetNamespace() == Namespace })
	changed := predicate.Or(predicate.GenerationChanged[informer.Object](),
		predicate.DeletionStarted[informer.Object]())
	err := ctrl.NewControllerManagedBy(f.Hub.Manager).Named(Name).
		For(&api.EphemeralCluster{}, builder.WithPredicates(here, changed)).
		Watches(&api.ProwJob{}, handler.EnqueueMapped(clusterOf)).
		Complete(p)
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(f.Hub.Manager).Named(OrphansName).
		For(&api.ProwJob{}, builder.WithPredicates(predicate.Matching(isOurs))).
		Watches(&api.EphemeralCluster{}, handler.EventHandler[informer.Object, reconcile.Request]{OnDelete: jobOf}).
		Complete(&orphans{p})
	if err != nil || o.Metrics == nil {
		return err
	}
	return f.Hub.Manager.Add(&counter{hub: f.Hub.Client, metrics: o.Metrics, interval: o.MetricsInterval})
}

// isOurs reports whether a ProwJob runs for an EphemeralCluster.
func isOurs(job informer.Object) bool {
	return job.GetNamespace() == JobNamespace && job.GetLabels()[api.EphemeralClusterLabel] != ""
}

// clusterOf returns a request for the EphemeralCluster that a ProwJob runs for.
func clusterOf(_ context.Context, job informer.Object) []reconcile.Request {
	if !isOurs(job) {
		return nil
	}
	return []reconcile.Request{request(Namespace, job.GetLabels()[api.EphemeralClusterLabel])}
}

// jobOf queues the ProwJob of an EphemeralCluster that is gone.
func jobOf(_ context.Context, gone informer.Deleted[informer.Object], q reconcile.Enqueuer[reconcile.Request]) {
	if ec, ok := gone.Object.(*api.EphemeralCluster); ok && ec.Namespace == Namespace && ec.Status.ProwJobID != "" {
		q.Add(request(JobNamespace, ec.Status.ProwJobID))
	}
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

// Reconcile implements reconcile.Reconciler.
func (p *provisioner) Reconcile(ctx context.Context, r reconcile.Request) (result reconcile.Result, err error) {
	ec := &api.EphemeralCluster{}
	if err := p.hub.Get(ctx, r.NamespacedName, ec); err != nil {
		return result, client.IgnoreNotFound(err)
	}
	if ec.DeletionTimestamp != nil {
		return p.end(ctx, ec)
	}
	before := ec.DeepCopyObject().(*api.EphemeralCluster)
	if ec.Status.ProwJobID == "" {
		result, err = p.begin(ctx, ec)
	} else {
		result, err = p.follow(ctx, ec)
	}
	done := finished(ec)
	if failed := p.writeStatus(ctx, before, ec); failed != nil {
		if err != nil {
			// Must be retried, even if err must not.
			return result, fmt.Errorf("%w (which should have said: %v)", failed, err)
		}
		return result, failed
	}
	if done && (err == nil || reconcile.IsTerminal(err)) {
		err = errors.Join(err, p.removeFinalizer(ctx, ec))
	}
	return result, err
}

// finished reports whether there is a job, and nothing remains to be done about it.
func finished(ec *api.EphemeralCluster) bool {
	return ec.Status.ProwJobID != "" && (ec.Status.Phase == api.Deprovisioned || ec.Status.Phase == api.Failed)
}

// writeStatus writes the status of ec, if it differs from before.
func (p *provisioner) writeStatus(ctx context.Context, before, ec *api.EphemeralCluster) error {
	conditions.Sort(ec.Status.Conditions)
	if equality.Semantic.DeepEqual(before.Status, ec.Status) {
		return nil
	}
	base := ec.DeepCopyObject().(*api.EphemeralCluster)
	base.Status = before.Status
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := p.hub.Status().Patch(ctx, ec, patch); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	p.o.Metrics.observe(before, ec)
	return nil
}

// set sets a condition. Its time is that of its last change between True and False.
func set(ec *api.EphemeralCluster, condition string, isTrue bool, reason, message string) {
	c := metav1.Condition{Type: condition, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if isTrue {
		c.Status = metav1.ConditionTrue
	}
	conditions.Set(&ec.Status.Conditions, ec.Generation, c)
}

func (p *provisioner) addFinalizer(ctx context.Context, ec *api.EphemeralCluster) error {
	_, err := controllerutil.Finalize(ctx, p.hub, ec, api.DependentProwJobFinalizer, nil)
	return err
}

func (p *provisioner) removeFinalizer(ctx context.Context, ec *api.EphemeralCluster) error {
	base := ec.DeepCopyObject().(*api.EphemeralCluster)
	if !controllerutil.RemoveFinalizer(ec, api.DependentProwJobFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := p.hub.Patch(ctx, ec, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}

// life is the lifetime of a cluster.
type life struct {
	// ttl is the whole lifetime. Zero means unlimited.
	ttl time.Duration
	// left is the time left, zero or less when it is over. It has no meaning without a ttl.
	left time.Duration
}

// lifeOf returns the lifetime of ec at now. It begins with the creation of ec.
func (o *Options) lifeOf(ec *api.EphemeralCluster, now time.Time) life {
	ttl := o.TimeToLive
	if ec.Spec.TimeToLive != nil {
		ttl = ec.Spec.TimeToLive.Duration
	}
	return life{ttl, ec.CreationTimestamp.Add(ttl).Sub(now)}
}

func (l life) over() bool { return l.ttl > 0 && l.left <= 0 }

// sooner returns the shorter of the remaining lifetime and d. A zero d means no delay.
func (l life) sooner(d time.Duration) time.Duration {
	if l.ttl > 0 && l.left > 0 && (d == 0 || l.left < d) {
		return l.left
	}
	return d
}

func (l life) String() string { return fmt.Sprintf("the time to live of %v is over", l.ttl) }

// Owner is a tenant of a Konflux cluster.
type Owner struct {
	Cluster string `json:"cluster"`
	Tenant  string `json:"tenant"`
}

// validate returns an error if ec may not have what it requests.
func (o *Options) validate(ec *api.EphemeralCluster) error {
	if ttl := ec.Spec.TimeToLive; ttl != nil && ttl.Duration <= 0 {
		return fmt.Errorf("timeToLive is %v: it must be positive", ttl.Duration)
	}
	test := ec.Spec.CIOperator.Test
	if test.ClusterClaim != nil {
		return nil // it takes a cluster from a pool, not an account
	}
	if test.ClusterProfile == "" {
		return fmt.Errorf("neither clusterProfile nor clusterClaim is set")
	}
	owners, found := o.Profiles[test.ClusterProfile]
	if !found {
		return fmt.Errorf("there is no cluster profile %q", test.ClusterProfile)
	}
	who := Owner{ec.Annotations[api.KonfluxClusterAnnotation], ec.Annotations[api.KonfluxTenantAnnotation]}
	if len(owners) == 0 || slices.Contains(owners, who) || who.Tenant != "" &&
		slices.Contains(o.PrivilegedTenants, who.Tenant) {
		return nil
	}
	return fmt.Errorf("tenant %q of cluster %q may not use cluster profile %q", who.Tenant, who.Cluster,
		test.ClusterProfile)
}

// Metrics measure how many EphemeralClusters there are, and how long they took. It is a prometheus.Collector.
//
// Concurrency: all methods may be called from any goroutine. A nil *Metrics measures nothing.
type Metrics struct {
	provisioning, deprovisioning prometheus.Histogram
	count                        *prometheus.Desc

	mu sync.Mutex
	// counts are those of the last count. A kind that is not among them is no longer reported.
	counts map[kind]int
}

// kind is the set of properties that clusters are counted by.
type kind struct {
	konfluxCluster, konfluxTenant, profile, workflow string
	phase                                            api.EphemeralClusterPhase
}

var buckets = []float64{300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10800}

// NewMetrics returns metrics without any measurements.
func NewMetrics() *Metrics {
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	return &Metrics{
		provisioning: histogram("ephemeralcluster_provisioning_duration_seconds",
			"From the creation of an EphemeralCluster to its readiness."),
		deprovisioning: histogram("ephemeralcluster_deprovisioning_duration_seconds",
			"From the signal that a test is over to the end of its job."),
		count: prometheus.NewDesc("ephemeralcluster_count", "EphemeralClusters that there are.",
			[]string{"konflux_cluster", "konflux_tenant", "cluster_profile", "workflow", "phase"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.count
	m.provisioning.Describe(out)
	m.deprovisioning.Describe(out)
}

// Collect implements prometheus.Collector. All counts are of the same time.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	counts := maps.Clone(m.counts)
	m.mu.Unlock()
	for k, n := range counts {
		out <- prometheus.MustNewConstMetric(m.count, prometheus.GaugeValue, float64(n), k.konfluxCluster,
			k.konfluxTenant, k.profile, k.workflow, string(k.phase))
	}
	m.provisioning.Collect(out)
	m.deprovisioning.Collect(out)
}

// observe measures the duration of the phase that a change ends.
func (m *Metrics) observe(before, after *api.EphemeralCluster) {
	if m == nil || before.Status.Phase == after.Status.Phase {
		return
	}
	switch after.Status.Phase {
	case api.Ready:
		m.provisioning.Observe(time.Since(after.CreationTimestamp.Time).Seconds())
	case api.Deprovisioned:
		if done := conditions.Get(after.Status.Conditions, api.TestCompleted); done != nil {
			m.deprovisioning.Observe(time.Since(done.LastTransitionTime.Time).Seconds())
		}
	}
}

// counter counts the clusters at intervals, while this process leads.
type counter struct {
	hub      client.Client
	metrics  *Metrics
	interval time.Duration
}

// Name is the name in the manager.
func (c *counter) Name() string { return "ephemeral-cluster-metrics" }

// Run counts until ctx is done. After that nothing is reported.
func (c *counter) Run(ctx context.Context) error {
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	defer c.metrics.replace(nil)
	for {
		if err := c.take(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Could not count EphemeralClusters")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *counter) take(ctx context.Context) error {
	var list api.EphemeralClusterList
	if err := c.hub.List(ctx, &list, client.InNamespace(Namespace), client.ReadOnly, client.Lagging); err != nil {
		return err
	}
	counts := map[kind]int{}
	for i := range list.Items {
		ec := &list.Items[i]
		counts[kind{
			ec.Annotations[api.KonfluxClusterAnnotation], ec.Annotations[api.KonfluxTenantAnnotation],
			ec.Spec.CIOperator.Test.ClusterProfile, ec.Spec.CIOperator.Test.Workflow, ec.Status.Phase,
		}]++
	}
	c.metrics.replace(counts)
	return nil
}

func (m *Metrics) replace(counts map[kind]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts = counts
}
