package shard

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
)

// expiredLeaseAge is the number of lease durations after which the lease of a dead replica is deleted.
const expiredLeaseAge = 20

// unusedLeaseAge is the age at which a free lease is deleted: nobody has served its cluster since, so the cluster has
// left the fleet.
const unusedLeaseAge = 24 * time.Hour

// expireSessions finds the sessions that have expired, until ctx is done.
func (o *Owner) expireSessions(ctx context.Context) {
	if o.informer.WaitForSync(ctx) != nil {
		return
	}
	for ctx.Err() == nil {
		due, next := o.replicas.expired()
		asked := time.Now()
		for _, session := range due {
			if o.isExpired(ctx, session) {
				klog.FromContext(ctx).Info("Session expired; other replicas may take its leases", "session", session)
				o.counts.expired.Add(1)
				o.reviewAll(ctx)
			}
		}
		if len(due) > 0 {
			next = min(next, max(0, o.options.retryAfter()-time.Since(asked)))
		}
		timer := time.NewTimer(max(next, time.Millisecond))
		select {
		case <-timer.C:
		case <-o.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// isExpired asks the server whether a session was renewed since the informer showed it last. If the server does not
// answer, isExpired returns false.
func (o *Owner) isExpired(ctx context.Context, session string) bool {
	var lease *coordinationv1.Lease
	err := o.try(ctx, func(ctx context.Context) (err error) {
		lease, err = o.leases.Get(ctx, leaseName(o.options.Fleet, key{replicaLease, identityOf(session)}),
			metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		lease, err = nil, nil
	}
	return err == nil && o.replicas.confirmExpired(session, lease)
}

// runCleanup calls retryReleases and collectGarbage every retry period, until ctx is done.
func (o *Owner) runCleanup(ctx context.Context) {
	ticker := time.NewTicker(o.options.RetryPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		o.retryReleases(ctx)
		o.collectGarbage(ctx)
	}
}

// retryReleases writes the releases that failed. It also releases leases that were taken by a write whose answer was
// lost.
func (o *Owner) retryReleases(ctx context.Context) {
	for _, l := range o.informer.List(o.options.Namespace, labels.Everything()) {
		if kind(l.Labels[KindLabel]) != replicaLease {
			o.releaseStray(l)
		}
	}
	o.mu.Lock()
	failed := map[*claim]*pendingRelease{}
	for _, c := range o.claims {
		if c.pending != nil && c.pending.retry {
			failed[c] = c.pending
		}
	}
	o.mu.Unlock()
	for c, d := range failed {
		last, err := o.current(ctx, c.lease)
		if err == nil {
			err = o.writeRelease(ctx, c, d, last)
		}
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Lease is not released yet", "lease", c.lease, "err", err)
		}
	}
}

// releaseStray marks a lease for release if it names this replica's session although nobody here serves it or waits for
// it.
func (o *Owner) releaseStray(l *coordinationv1.Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.session == nil || holderOf(l) != o.session.id || o.claims[l.Name] != nil || o.isStaleLocked(l) {
		return
	}
	k := key{kind(l.Labels[KindLabel]), l.Annotations[NameAnnotation]}
	o.claims[l.Name] = &claim{
		key: k, lease: l.Name, wake: make(chan struct{}, 1),
		pending: &pendingRelease{session: o.session.id, retry: true},
	}
}

// current reads a lease from the server. It returns nil if there is none.
func (o *Owner) current(ctx context.Context, name string) (l *coordinationv1.Lease, err error) {
	err = o.try(ctx, func(ctx context.Context) error {
		l, err = o.leases.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return l, err
}

// collectGarbage drops records that are no longer needed. The first of the replicas also deletes the leases of dead
// replicas, and of clusters that nobody has served for long. If a replica wants such a lease just then, it creates a
// new one.
func (o *Owner) collectGarbage(ctx context.Context) {
	named := map[string]bool{}
	var unused []*coordinationv1.Lease
	for _, l := range o.informer.List(o.options.Namespace, labels.Everything()) {
		named[holderOf(l)] = true
		if kind(l.Labels[KindLabel]) != replicaLease && holderOf(l) == "" && l.Spec.RenewTime != nil &&
			time.Since(l.Spec.RenewTime.Time) > unusedLeaseAge {
			unused = append(unused, l)
		}
	}
	o.replicas.forget(named)
	o.mu.Lock()
	for name, at := range o.deletedHeld {
		if time.Since(at) > o.options.LeaseDuration {
			delete(o.deletedHeld, name)
		}
	}
	member := o.session != nil
	o.mu.Unlock()
	if all := o.replicas.eligible(""); !member || len(all) == 0 || all[0] != o.options.Identity {
		return
	}
	for name, m := range o.replicas.expiredLeases(expiredLeaseAge * o.options.LeaseDuration) {
		o.deleteUnused(ctx, name, m)
	}
	for _, l := range unused {
		o.deleteUnused(ctx, l.Name, membership{uid: l.UID, version: l.ResourceVersion})
	}
}

func (o *Owner) deleteUnused(ctx context.Context, name string, m membership) {
	if o.limiter.Wait(ctx) != nil {
		return
	}
	err := o.try(ctx, func(ctx context.Context) error { return o.deleteExactly(ctx, name, m) })
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).V(2).Info("Cannot delete an unused lease yet", "lease", name, "err", err)
	}
}
