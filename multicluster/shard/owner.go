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

// Owner decides which clusters this replica serves; the package comment says how. It implements [multicluster.Owner].
//
// Concurrency: all methods may be called from any goroutine.
type Owner struct {
	options  Options
	lease    string       // the name of this replica's lease
	config   *rest.Config // of the replicas' locks
	leases   *gentype.Client[*coordinationv1.Lease]
	limiter  flowcontrol.RateLimiter
	informer *informer.SharedInformer[*coordinationv1.Lease]
	replicas *replicas

	// leaveCalled is closed by Leave; nobody sends.
	leaveCalled chan struct{}

	mu      sync.Mutex
	ran     bool
	leaving bool
	stats   Stats // the counters only
	// campaign is the elector of the membership, or nil before Run.
	campaign *leader.Elector
	// session is not nil while this replica is a member.
	session *session
	// claims has a claim for every lease that this process waits for, serves or releases, by the lease's name.
	claims map[string]*claim
	// written has the answers to this replica's writes of leases, until the informer shows them or something later.
	written map[string]*coordinationv1.Lease
	// deletedHeld has the leases that were deleted while a session held them, and when this replica saw it.
	deletedHeld map[string]time.Time
}

var _ multicluster.Owner = (*Owner)(nil)

// New returns the owner that decides for this replica. The leases are in the cluster of config, the local cluster. New
// starts nothing and makes no request.
func New(config *rest.Config, o Options) (*Owner, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("shard owner: %w", err)
	}
	own := rest.CopyConfig(config)
	own.UserAgent = cmp.Or(own.UserAgent, rest.DefaultKubernetesUserAgent()) + "/shard-owner"
	own.QPS, own.RateLimiter = -1, nil // renewals wait for no other requests
	server, err := groupclient.New(own, coordinationv1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("shard owner: client for leases: %w", err)
	}
	owner := &Owner{
		options: o, lease: leaseName(o.Fleet, key{replicaLease, o.Identity}),
		config: own, leases: groupclient.Resource[*coordinationv1.Lease](server, "leases", o.Namespace),
		limiter:  flowcontrol.NewFakeAlwaysRateLimiter(),
		replicas: newReplicas(o.LeaseDuration),
		claims:   map[string]*claim{}, written: map[string]*coordinationv1.Lease{}, deletedHeld: map[string]time.Time{},
		leaveCalled: make(chan struct{}),
	}
	if _, err := owner.elector("any session"); err != nil {
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
	tasks.Go(func() { _ = o.informer.Run(inner) }) // it fails only when it was run before
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
	delete(o.deletedHeld, l.Name)
	if own := o.written[l.Name]; own != nil && !versions.Earlier(l.ResourceVersion, own.ResourceVersion) {
		delete(o.written, l.Name)
	}
	o.mu.Unlock()
	if c != nil {
		o.review(c)
	}
}

// onDelete handles the deletion of a lease. Only people delete a lease that is held. Its holder then loses its tenure
// at once, and the other replicas give it a lease duration to do so.
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
		o.deletedHeld[l.Name] = time.Now()
	}
	if own := o.written[l.Name]; own != nil && own.UID == l.UID {
		delete(o.written, l.Name)
	}
	o.mu.Unlock()
	if c != nil {
		o.review(c)
	}
}

// latest returns the newest state of a lease that this replica knows: that in the informer, or the answer to its own
// last write. It returns nil if there is no such lease.
func (o *Owner) latest(name string) *coordinationv1.Lease {
	o.mu.Lock()
	own := o.written[name]
	o.mu.Unlock()
	l, _ := o.informer.Get(o.options.Namespace, name) // after written, which is cleared once the informer shows more
	if own != nil && (l == nil || versions.Earlier(l.ResourceVersion, own.ResourceVersion)) {
		return own
	}
	return l
}

// sleep returns when wake has a token, when atMost has passed (zero means no limit), or when ctx ends.
func sleep(ctx context.Context, wake <-chan struct{}, atMost time.Duration) {
	var late <-chan time.Time
	if atMost > 0 {
		late = time.After(atMost)
	}
	select {
	case <-wake:
	case <-late:
	case <-ctx.Done():
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
	return o.acquire(ctx, key{clusterLease, cluster.Name}, report)
}

// whyNotMemberLocked returns why this replica is not a member.
func (o *Owner) whyNotMemberLocked() string {
	if o.campaign == nil {
		return "Run was not called yet"
	}
	switch status := o.campaign.Status(); {
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

// Stats holds counters and the present state of an [Owner].
type Stats struct {
	// Member means that this replica is a member. Replicas is the number of members, as far as it knows.
	Member   bool
	Replicas int
	// Serving is the number of leases that this replica holds, Waiting the number that it waits for, and Releasing the
	// number whose tenure has ended but whose release is not written yet.
	Serving, Waiting, Releasing int
	// Taken counts tenures. Released, HandedOver and Lost count how they ended. Stuck counts tenures after which work
	// continued, so that the lease has to expire.
	Taken, Released, HandedOver, Lost, Stuck uint64
	// HandoverRequests counts handovers that this replica requested, Conflicts writes for which another replica was
	// faster, Errors requests that failed, and Expired the sessions that this replica found expired.
	HandoverRequests, Conflicts, Errors, Expired uint64
}

// count increments one of the counters.
func (o *Owner) count(counter *uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*counter++
}

// ended counts how a tenure ended. Lost tenures were counted when they were lost.
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
