package shard

import (
	"context"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
)

// unusedLeaseAge is how long a lease is kept after it was last taken, renewed or released, if no live session holds it.
// Then its replica has ended for good, or its cluster has left the fleet.
const unusedLeaseAge = time.Hour

// expireSessions finds the sessions that have expired, until ctx is done.
func (o *Owner) expireSessions(ctx context.Context) {
	if o.informer.WaitForSync(ctx) != nil {
		return
	}
	for ctx.Err() == nil {
		due, next := o.replicas.expired()
		asked := time.Now()
		for _, session := range due {
			// The informer may be behind; the server knows whether the session was renewed.
			l, err := o.read(ctx, leaseName(o.options.Fleet, key{replicaLease, identityOf(session)}))
			if err == nil && o.replicas.confirmExpired(session, l) {
				klog.FromContext(ctx).Info("Session expired; other replicas may take its leases", "session", session)
				o.count(&o.stats.Expired)
				o.reviewAll(ctx)
			}
		}
		if len(due) > 0 {
			next = min(next, o.options.RetryPeriod-time.Since(asked))
		}
		sleep(ctx, nil, max(next, time.Millisecond))
	}
}

// cleanUp announces that this replica is leaving, retries releases and collects garbage, once in each retry period,
// until ctx is done.
func (o *Owner) cleanUp(ctx context.Context) {
	ticker := time.NewTicker(o.options.RetryPeriod)
	defer ticker.Stop()
	leave := o.leaveCalled
	var announced *session // the session whose lease has the annotation
	for {
		select {
		case <-ctx.Done():
			return
		case <-leave:
			leave = nil
		case <-ticker.C:
		}
		announced = o.announceLeaving(ctx, announced)
		o.retryReleases(ctx)
		o.collectGarbage(ctx)
	}
}

// announceLeaving annotates this replica's lease after Leave was called. It returns the session that the annotation
// names. announced is the result of the last call.
func (o *Owner) announceLeaving(ctx context.Context, announced *session) *session {
	o.mu.Lock()
	s, leaving := o.session, o.leaving
	o.mu.Unlock()
	if s == nil || s == announced || !leaving {
		return announced
	}
	if err := o.annotate(ctx, o.lease, LeavingAnnotation, s.id); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot announce that this replica is leaving")
		return announced
	}
	return s
}

// retryReleases writes the releases that failed. It also releases leases that name this replica's session but have no
// claim. A write took such a lease, but the answer was lost.
func (o *Owner) retryReleases(ctx context.Context) {
	var leases []*coordinationv1.Lease
	for _, l := range o.informer.List(o.options.Namespace, labels.Everything()) {
		if keyOf(l).kind != replicaLease {
			leases = append(leases, o.latest(l.Name))
		}
	}
	releases := map[*claim]*release{}
	o.mu.Lock()
	for _, l := range leases {
		if o.session != nil && holderOf(l) == o.session.id && o.claims[l.Name] == nil {
			o.claimLocked(keyOf(l)).release = &release{session: o.session.id, retry: true}
		}
	}
	for _, c := range o.claims {
		if c.release != nil && c.release.retry {
			releases[c] = c.release
		}
	}
	o.mu.Unlock()
	for c, r := range releases {
		if err := o.writeRelease(ctx, c, r); err != nil {
			klog.FromContext(ctx).V(2).Info("Lease is not released yet", "lease", c.lease, "err", err)
		}
	}
}

// collectGarbage drops records that are no longer needed. The replica whose name comes first also deletes the leases
// that no live session has held for unusedLeaseAge, unless it waits for them itself. A replica that later wants such a
// lease creates it again.
func (o *Owner) collectGarbage(ctx context.Context) {
	leases := o.informer.List(o.options.Namespace, labels.Everything())
	named := map[string]bool{}
	for _, l := range leases {
		named[holderOf(l)] = true
	}
	o.replicas.forget(named)
	all := o.replicas.eligible("")
	o.mu.Lock()
	maps.DeleteFunc(o.deletedWhileHeld,
		func(_ string, at time.Time) bool { return time.Since(at) > o.options.LeaseDuration })
	if o.session == nil || len(all) == 0 || all[0] != o.options.Identity {
		leases = nil
	}
	unused := slices.DeleteFunc(leases, func(l *coordinationv1.Lease) bool {
		held := holderOf(l) != "" && o.replicas.state(holderOf(l), 0) != dead
		return held || o.claims[l.Name] != nil || l.Spec.RenewTime == nil ||
			time.Since(l.Spec.RenewTime.Time) < unusedLeaseAge
	})
	o.mu.Unlock()
	for _, l := range unused {
		if o.waitForLimit(ctx) != nil {
			return
		}
		if err := o.remove(ctx, l); err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot delete an unused lease yet", "lease", l.Name, "err", err)
		}
	}
}
