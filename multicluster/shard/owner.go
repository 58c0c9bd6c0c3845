package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/groupclient"
	"github.com/flyball-dev/flyball/internal/versions"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/multicluster"
)

// Owner decides which clusters this replica serves, as the package comment describes. It implements
// [multicluster.Owner].
//
// Concurrency: all methods may be called from any goroutine.
type Owner struct {
	options  Options
	lease    string       // the name of this replica's lease
	config   *rest.Config // for the lock on this replica's lease
	leases   *gentype.Client[*coordinationv1.Lease]
	limiter  flowcontrol.RateLimiter
	informer *informer.SharedInformer[*coordinationv1.Lease]
	replicas *replicas

	// leaveCalled is closed by Leave. Never sent on.
	leaveCalled chan struct{}

	mu      sync.Mutex
	ran     bool
	leaving bool
	stats   Stats // the counters only
	// elector holds this replica's own lease; nil before Run.
	elector *leader.Elector
	// session is not nil while this replica is a member.
	session *session
	// claims has a claim for every lease that this process waits for, holds or releases, by the lease's name.
	claims map[string]*claim
	// written has the leases as this replica wrote them last, by name, until the informer shows that version or a later
	// one.
	written map[string]*coordinationv1.Lease
	// deletedWhileHeld has the time at which this replica saw that a held lease was deleted, by the lease's name.
	deletedWhileHeld map[string]time.Time
}

var _ multicluster.Owner = (*Owner)(nil)

// New returns the owner for this replica. The leases are in the cluster of config, which should be the local cluster.
// New starts nothing and sends no request.
func New(config *rest.Config, o Options) (*Owner, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("shard owner: %w", err)
	}
	own := rest.CopyConfig(config)
	own.UserAgent = cmp.Or(own.UserAgent, rest.DefaultKubernetesUserAgent()) + "/shard-owner"
	own.QPS, own.RateLimiter = -1, nil // renewals must not wait for other requests
	server, err := groupclient.New(own, coordinationv1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("shard owner: client for leases: %w", err)
	}
	owner := &Owner{
		options: o, lease: leaseName(o.Fleet, key{replicaLease, o.Identity}),
		config: own, leases: groupclient.Resource[*coordinationv1.Lease](server, "leases", o.Namespace),
		limiter:  flowcontrol.NewFakeAlwaysRateLimiter(),
		replicas: newReplicas(o.LeaseDuration),
		claims:   map[string]*claim{}, written: map[string]*coordinationv1.Lease{},
		deletedWhileHeld: map[string]time.Time{},
		leaveCalled:      make(chan struct{}),
	}
	if _, err := owner.newElector("any session"); err != nil {
		return nil, fmt.Errorf("shard owner: %w", err)
	}
	if o.QPS > 0 {
		owner.limiter = flowcontrol.NewTokenBucketRateLimiter(o.QPS, o.Burst)
	}
	lw := listwatch.NewRESTListerWatcher[*coordinationv1.Lease](server, listwatch.RESTOptions{
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

// Run makes this replica a member until ctx is done. If the replica loses its membership, Run makes it a member again.
// When ctx is done, Run releases the remaining leases; those that it cannot release expire. Run may be called once.
func (o *Owner) Run(ctx context.Context) error {
	o.mu.Lock()
	again := o.ran
	o.ran = true
	o.mu.Unlock()
	if again {
		return errors.New("shard owner: Run called twice")
	}
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "replica", o.options.Identity))
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if _, err := o.informer.AddHandler(informer.Handler[*coordinationv1.Lease]{
		OnAdd:    func(l *coordinationv1.Lease, _ bool) { o.onLease(inner, l) },
		OnUpdate: func(_, l *coordinationv1.Lease) { o.onLease(inner, l) },
		OnDelete: func(d informer.Deleted[*coordinationv1.Lease]) { o.onDelete(inner, d.Object) },
	}, informer.HandlerOptions{Name: "shard-owner"}); err != nil {
		return fmt.Errorf("shard owner: %w", err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() { _ = o.informer.Run(inner) }) // fails only in a second call
	tasks.Go(func() { o.expireSessions(inner) })
	tasks.Go(func() { o.cleanUp(inner) })
	o.runSessions(ctx)
	stop()
	tasks.Wait()
	return nil
}

func (o *Owner) onLease(ctx context.Context, l *coordinationv1.Lease) {
	if keyOf(l).kind == replicaLease {
		if o.replicas.observe(l) {
			o.reviewAll(ctx)
		}
		return
	}
	o.replicas.observeHolder(l)
	o.mu.Lock()
	c := o.claims[l.Name]
	delete(o.deletedWhileHeld, l.Name)
	if own := o.written[l.Name]; own != nil && !versions.Earlier(l.ResourceVersion, own.ResourceVersion) {
		delete(o.written, l.Name)
	}
	o.mu.Unlock()
	if c != nil {
		o.review(c)
	}
}

// onDelete handles the deletion of a lease. Only people delete a lease that is held. The holder then loses its tenure
// as soon as it sees the deletion. The other replicas wait for a lease duration, in case the holder sees it late.
func (o *Owner) onDelete(ctx context.Context, l *coordinationv1.Lease) {
	if keyOf(l).kind == replicaLease {
		if o.replicas.observeDeletion(l.Name) {
			o.reviewAll(ctx)
		}
		return
	}
	o.mu.Lock()
	c := o.claims[l.Name]
	if holderOf(l) != "" {
		o.deletedWhileHeld[l.Name] = time.Now()
	}
	if own := o.written[l.Name]; own != nil && own.UID == l.UID {
		delete(o.written, l.Name)
	}
	o.mu.Unlock()
	if c != nil {
		o.review(c)
	}
}

// latest returns the newest state of a lease that this replica knows. It is the state in the informer, or the one that
// this replica wrote last. It returns nil if there is no such lease.
func (o *Owner) latest(name string) *coordinationv1.Lease {
	o.mu.Lock()
	own := o.written[name]
	o.mu.Unlock()
	l, _ := o.informer.Get(o.options.Namespace, name) // after written, which is cleared when the informer catches up
	if own != nil && (l == nil || versions.Earlier(l.ResourceVersion, own.ResourceVersion)) {
		return own
	}
	return l
}

// sleep returns when wake has a token, when atMost has passed (zero means no limit), or when ctx is done.
func sleep(ctx context.Context, wake <-chan struct{}, atMost time.Duration) {
	var timeout <-chan time.Time
	if atMost > 0 {
		timeout = time.After(atMost)
	}
	select {
	case <-wake:
	case <-timeout:
	case <-ctx.Done():
	}
}

// Leave announces that this replica stops. From now on it takes no lease, and the others rank without it and take the
// leases that it releases. It still serves each cluster until the cluster's tenure is released. Leave does not wait.
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
	return o.acquire(ctx, key{clusterLease, cluster.Name}, report)
}

func (o *Owner) whyNotMemberLocked() string {
	if o.elector == nil {
		return "Run was not called yet"
	}
	switch status := o.elector.Status(); {
	case status.Err != nil:
		return status.Err.Error()
	case status.Holder != "":
		return fmt.Sprintf("session %s has not expired yet", status.Holder)
	}
	return "it is joining"
}

// Health returns nil while this replica is a member and its watch of the leases works.
func (o *Owner) Health() error {
	if h := o.informer.Health(); h.Err != nil {
		return fmt.Errorf("leases of the replicas cannot be read: %w", h.Err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.session == nil {
		return errors.New("this replica is not a member: " + o.whyNotMemberLocked())
	}
	return nil
}

// Stats has the counters and the current state of an [Owner].
type Stats struct {
	// Member means that this replica is a member. Replicas is the number of members, as far as it knows.
	Member   bool
	Replicas int
	// Serving is the number of leases that this replica holds, and Waiting the number that it waits for. Releasing is
	// the number of leases whose tenure has ended, but whose release is not written yet.
	Serving, Waiting, Releasing int
	// Taken counts the leases that this replica has taken. Released, HandedOver and Lost count how their tenures ended.
	// Stuck counts the tenures after which work continued, so that the lease had to expire; they are also counted as
	// Released or HandedOver.
	Taken, Released, HandedOver, Lost, Stuck uint64
	// HandoverRequests counts the handovers that this replica has requested. Conflicts counts its writes that failed
	// because another replica was faster. Errors counts requests that failed otherwise. Expired counts the sessions
	// that this replica has found expired.
	HandoverRequests, Conflicts, Errors, Expired uint64
}

func (o *Owner) count(counter *uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*counter++
}

// ended counts how a tenure ended. It ignores a lost tenure, because lose has already counted it.
func (s *Stats) ended(t *tenure, stuck error) {
	select {
	case <-t.lost:
		return
	default:
	}
	select {
	case <-t.ending:
		s.HandedOver++
	default:
		s.Released++
	}
	if stuck != nil {
		s.Stuck++
	}
}

// Stats returns a snapshot of the counters.
func (o *Owner) Stats() Stats {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.stats
	s.Member, s.Replicas = o.session != nil, o.replicas.count()
	for _, c := range o.claims {
		switch {
		case c.tenure != nil:
			s.Serving++
		case c.release != nil:
			s.Releasing++
		case c.waiting:
			s.Waiting++
		}
	}
	return s
}
