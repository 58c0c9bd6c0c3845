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

// Owner decides which clusters this replica serves; the package comment says how. It implements [multicluster.Owner].
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

	// wake has capacity 1. It holds a token when there is a session that expireSessions does not know. Never closed.
	wake chan struct{}
	// leaveCalled is closed by Leave; nobody sends.
	leaveCalled chan struct{}

	mu  sync.Mutex
	ran bool
	// session is not nil while this replica is a member; otherwise notMemberReason says why not.
	session         *session
	notMemberReason string
	leaving         bool
	// claims has a claim for every lease that this process waits for, serves or releases, by the lease's name.
	claims map[string]*claim
	// deletedHeld has the leases that were deleted while a session held them, and when this replica saw it.
	deletedHeld map[string]time.Time
	// released has the versions of leases that this replica has released, until the informer shows them.
	released map[string]string
}

var _ multicluster.Owner = (*Owner)(nil)

// New returns the owner that decides for this replica. The leases are in the cluster of config, the local cluster. New
// starts nothing and makes no request.
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
	own.QPS, own.RateLimiter = -1, nil // a renewal must not wait for other requests, which have a limiter of their own
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("shard owner: client for leases: %w", err)
	}
	owner := &Owner{
		options: o, lease: leaseName(o.Fleet, key{replicaLease, o.Identity}),
		client: client.CoordinationV1(), leases: client.CoordinationV1().Leases(o.Namespace),
		limiter:  flowcontrol.NewFakeAlwaysRateLimiter(),
		replicas: newReplicas(o.LeaseDuration),
		wake:     make(chan struct{}, 1), leaveCalled: make(chan struct{}),
		claims: map[string]*claim{}, deletedHeld: map[string]time.Time{}, released: map[string]string{},
		notMemberReason: "Run was not called yet",
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

// Identity returns the name of this replica.
func (o *Owner) Identity() string { return o.options.Identity }

// Run makes this replica a member, and again whenever it has lost its membership, until ctx is done. It then releases
// what is left, and returns; leases that it could not release expire. It may be called once.
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
	var tasks sync.WaitGroup
	tasks.Go(func() { _ = o.informer.Run(inner) }) // it fails only when it was run before
	tasks.Go(func() { o.expireSessions(inner) })
	tasks.Go(func() { o.runCleanup(inner) })
	o.runSessions(ctx)
	stop()
	tasks.Wait()
	return nil
}

// handler handles the informer's events.
func (o *Owner) handler(ctx context.Context) informer.Handler[*coordinationv1.Lease] {
	return informer.Handler[*coordinationv1.Lease]{
		OnAdd:    func(l *coordinationv1.Lease, _ bool) { o.onLease(ctx, l) },
		OnUpdate: func(_, l *coordinationv1.Lease) { o.onLease(ctx, l) },
		OnDelete: func(d informer.Deleted[*coordinationv1.Lease]) { o.onDelete(ctx, d.Object) },
	}
}

func (o *Owner) onLease(ctx context.Context, l *coordinationv1.Lease) {
	if kind(l.Labels[KindLabel]) == replicaLease {
		if o.replicas.observe(l) {
			o.wakeExpiry()
			o.reviewAll(ctx)
		}
		return
	}
	if o.replicas.observeHolder(l) {
		o.wakeExpiry()
	}
	o.mu.Lock()
	c := o.claims[l.Name]
	delete(o.deletedHeld, l.Name)
	if !o.isStaleLocked(l) {
		delete(o.released, l.Name)
	}
	o.mu.Unlock()
	if c != nil {
		o.review(c, l)
	}
}

// onDelete handles the deletion of a lease. Only people delete a lease that is held. Its holder then loses its tenure
// at once, and the other replicas give it a lease duration to do so.
func (o *Owner) onDelete(ctx context.Context, l *coordinationv1.Lease) {
	if kind(l.Labels[KindLabel]) == replicaLease {
		if o.replicas.observeDeletion(l.Name) {
			o.reviewAll(ctx)
		}
		return
	}
	o.mu.Lock()
	if holderOf(l) != "" {
		o.deletedHeld[l.Name] = time.Now()
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
		c.notify()
	}
}

// wakeExpiry makes expireSessions look for new sessions.
func (o *Owner) wakeExpiry() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Leave announces that this replica stops. From now on it takes nothing, and the others leave it out of their ranking
// and take what it releases. Leave does not wait. This replica continues to serve its clusters until their tenures are
// released.
func (o *Owner) Leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.leaving {
		o.leaving = true
		close(o.leaveCalled)
	}
}

// Acquire implements [multicluster.Owner].
func (o *Owner) Acquire(ctx context.Context, cluster multicluster.ClusterInfo,
	report func(why string),
) (multicluster.Tenure, error) {
	t, err := o.acquire(ctx, key{clusterLease, cluster.Name}, report)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Health returns nil while this replica is a member and its watch of the leases works.
func (o *Owner) Health() error {
	if h := o.informer.Health(); h.Err != nil {
		return fmt.Errorf("leases of the replicas cannot be read: %w", h.Err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.session == nil {
		return errors.New("this replica is not a member: " + o.notMemberReason)
	}
	return nil
}
