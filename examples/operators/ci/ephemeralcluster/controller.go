package ephemeralcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	if err := p.hub.Status().Patch(ctx, ec, client.MergeFromOptimistic(base)); err != nil {
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
	conditions.Set(&ec.Status.Conditions, ec.Generation, c, conditions.OnStatus)
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
	if err := p.hub.Patch(ctx, ec, client.MergeFromOptimistic(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}
