package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/multicluster"
)

// Owner spreads clusters over replicas; the package comment says how. It implements [multicluster.Owner].
//
// Concurrency: all methods may be called from any goroutine.
type Owner struct {
	options  Options
	lease    string // the name of this replica's lease
	client   coordinationclient.LeasesGetter
	leases   coordinationclient.LeaseInterface
	limiter  flowcontrol.RateLimiter
	informer *informer.SharedInformer[*coordinationv1.Lease]
	replicas *replicas
	counts   counts

	// wake has capacity 1: a token for the census that there is a session that it does not know. Never closed.
	wake chan struct{}
	// left is closed by Leave; nobody sends.
	left chan struct{}

	mu  sync.Mutex
	ran bool
	// session is not nil while this replica is a member; whyNot says why it is not.
	session *session
	whyNot  string
	leaving bool
	// claims are what this process has to do with leases, by their names.
	claims map[string]*claim
	// missed are leases that were deleted while somebody held them, and when that was seen.
	missed map[string]time.Time
	// released are the versions of leases that this replica has released, until the informer shows them.
	released map[string]string
}

var _ multicluster.Owner = (*Owner)(nil)

// New returns the owner of the clusters that fall to this replica. Leases are in the cluster of config, the local
// one. Nothing is started, and no request made.
func New(config *rest.Config, o Options) (*Owner, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("shard owner: %w", err)
	}
	if err := validTimes(o.Options); err != nil {
		return nil, fmt.Errorf("shard owner: %w", err)
	}
	own := rest.CopyConfig(config)
	own.UserAgent = cmp.Or(own.UserAgent, rest.DefaultKubernetesUserAgent()) + "/shard-owner"
	own.QPS, own.RateLimiter = -1, nil // a renewal never waits behind other requests; those have a limiter of their own
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("shard owner: client for leases: %w", err)
	}
	owner := &Owner{
		options: o, lease: leaseName(o.Fleet, key{replicaLease, o.Identity}),
		client: client.CoordinationV1(), leases: client.CoordinationV1().Leases(o.Namespace),
		limiter:  flowcontrol.NewFakeAlwaysRateLimiter(),
		replicas: newReplicas(o.LeaseDuration),
		wake:     make(chan struct{}, 1), left: make(chan struct{}),
		claims: map[string]*claim{}, missed: map[string]time.Time{}, released: map[string]string{},
		whyNot: "it was not run yet",
	}
	if o.QPS > 0 {
		owner.limiter = flowcontrol.NewTokenBucketRateLimiter(o.QPS, o.Burst)
	}
	lw := listwatch.NewRESTListerWatcher[*coordinationv1.Lease](client.CoordinationV1().RESTClient(),
		listwatch.RESTOptions{
			Resource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease",
			Namespace: o.Namespace, LabelSelector: FleetLabel + "=" + o.Fleet,
		})
	owner.informer = informer.NewSharedInformer(lw, informer.Options[*coordinationv1.Lease]{
		Resource: "leases.coordination.k8s.io",
		Backoff:  informer.Backoff{Min: o.RetryPeriod / 4, Max: o.RetryPeriod},
	})
	return owner, nil
}

// Identity names this replica.
func (o *Owner) Identity() string { return o.options.Identity }

// Run makes this replica one of those that share the fleet, and again when that is lost, until ctx is done. It then
// gives back what is left to give back, and returns; what is not given back by then runs out. It may be called once.
func (o *Owner) Run(ctx context.Context) error {
	o.mu.Lock()
	again := o.ran
	o.ran = true
	o.mu.Unlock()
	if again {
		return errors.New("shard owner: Run called twice")
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "replica", o.options.Identity)
	ctx = klog.NewContext(ctx, logger)
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if _, err := o.informer.AddHandler(o.handler(inner), informer.HandlerOptions{Name: "shard-owner"}); err != nil {
		return fmt.Errorf("shard owner: %w", err)
	}
	var parts sync.WaitGroup
	parts.Go(func() { _ = o.informer.Run(inner) }) // it fails only when it was run before
	parts.Go(func() { o.census(inner) })
	parts.Go(func() { o.sweepAgain(inner) })
	o.belong(ctx)
	stop()
	parts.Wait()
	return nil
}

// handler takes in what the informer shows.
func (o *Owner) handler(ctx context.Context) informer.Handler[*coordinationv1.Lease] {
	return informer.Handler[*coordinationv1.Lease]{
		OnAdd:    func(l *coordinationv1.Lease, _ bool) { o.see(ctx, l) },
		OnUpdate: func(_, l *coordinationv1.Lease) { o.see(ctx, l) },
		OnDelete: func(d informer.Deleted[*coordinationv1.Lease]) { o.miss(ctx, d.Object) },
	}
}

func (o *Owner) see(ctx context.Context, l *coordinationv1.Lease) {
	if kind(l.Labels[KindLabel]) == replicaLease {
		if o.replicas.observe(l) {
			o.rouse()
			o.reviewAll(ctx)
		}
		return
	}
	if o.replicas.mention(l) {
		o.rouse()
	}
	o.mu.Lock()
	c := o.claims[l.Name]
	delete(o.missed, l.Name)
	if !o.behindLocked(l) {
		delete(o.released, l.Name)
	}
	o.mu.Unlock()
	if c != nil {
		o.review(c, l)
	}
}

// miss takes in that a lease was deleted. Nobody does that to one that is held but people: its holder lets go at
// once, and all others give it the time to.
func (o *Owner) miss(ctx context.Context, l *coordinationv1.Lease) {
	if kind(l.Labels[KindLabel]) == replicaLease {
		if o.replicas.lose(l.Name) {
			o.reviewAll(ctx)
		}
		return
	}
	o.mu.Lock()
	if holderOf(l) != "" {
		o.missed[l.Name] = time.Now()
	}
	delete(o.released, l.Name)
	c := o.claims[l.Name]
	var t *tenure
	if c != nil {
		t = c.tenure
	}
	o.mu.Unlock()
	switch {
	case t != nil && t.written.UID == l.UID:
		t.lose(errors.New("its lease was deleted"))
	case c != nil:
		c.nudge()
	}
}

// rouse has the census look at a session that is new.
func (o *Owner) rouse() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Leave says that this replica stops: from now on it takes nothing, and the others count it out and take what it
// releases. It does not wait. What is served goes on until its tenures are released.
func (o *Owner) Leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.leaving {
		o.leaving = true
		close(o.left)
	}
}

// Acquire implements [multicluster.Owner].
func (o *Owner) Acquire(ctx context.Context, cluster multicluster.ClusterInfo,
	say func(why string),
) (multicluster.Tenure, error) {
	t, err := o.acquire(ctx, key{clusterLease, cluster.Name}, say)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Health is nil while this replica is one of those that share the fleet and hears of the others.
func (o *Owner) Health() error {
	if h := o.informer.Health(); h.Err != nil {
		return fmt.Errorf("leases of the replicas cannot be read: %w", h.Err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.session == nil {
		return errors.New("this replica is not a member: " + o.whyNot)
	}
	return nil
}

// Replicas are those that share the fleet, as far as this one knows, in order.
func (o *Owner) Replicas() []Replica { return o.replicas.list() }
