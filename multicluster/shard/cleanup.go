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

// relicAge is after how many lease durations the lease of a dead replica is deleted.
const relicAge = 20

// freeFor is after how long the lease of a cluster that nobody has served since is deleted: the cluster has left.
const freeFor = 24 * time.Hour

// census finds out which sessions cannot be held any more, until ctx is done.
func (o *Owner) census(ctx context.Context) {
	if o.informer.WaitForSync(ctx) != nil {
		return
	}
	for ctx.Err() == nil {
		due, next := o.replicas.due()
		asked := time.Now()
		for _, session := range due {
			if o.ended(ctx, session) {
				klog.FromContext(
					ctx,
				).Info("A replica was not heard of for so long that others may serve what it served",
					"session", session)
				o.counts.dead.Add(1)
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

// ended asks the server whether a session was renewed since the informer showed it last. When it cannot be asked, it
// was.
func (o *Owner) ended(ctx context.Context, session string) bool {
	var lease *coordinationv1.Lease
	err := o.try(ctx, func(ctx context.Context) (err error) {
		lease, err = o.leases.Get(ctx, leaseName(o.options.Fleet, key{replicaLease, identityOf(session)}),
			metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		lease, err = nil, nil
	}
	return err == nil && o.replicas.confirm(session, lease)
}

// sweepAgain pays debts while this replica is a member, and clears away what is left of others, until ctx is done.
func (o *Owner) sweepAgain(ctx context.Context) {
	ticker := time.NewTicker(o.options.RetryPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		o.sweep(ctx)
		o.tidy(ctx)
	}
}

// sweep pays what tenures that are over still owe, and releases what a write that was given up has taken after all.
func (o *Owner) sweep(ctx context.Context) {
	for _, l := range o.informer.List(o.options.Namespace, labels.Everything()) {
		if kind(l.Labels[KindLabel]) != replicaLease {
			o.disown(l)
		}
	}
	o.mu.Lock()
	owing := map[*claim]*debt{}
	for _, c := range o.claims {
		if c.owed != nil && c.owed.late {
			owing[c] = c.owed
		}
	}
	o.mu.Unlock()
	for c, d := range owing {
		last, err := o.current(ctx, c.lease)
		if err == nil {
			err = o.pay(ctx, c, d, last)
		}
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Lease is not released yet", "lease", c.lease, "err", err)
		}
	}
}

// disown makes a lease that names this replica's session, although nobody here serves or waits for it, one to be
// released.
func (o *Owner) disown(l *coordinationv1.Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.session == nil || holderOf(l) != o.session.id || o.claims[l.Name] != nil || o.behindLocked(l) {
		return
	}
	k := key{kind(l.Labels[KindLabel]), l.Annotations[NameAnnotation]}
	o.claims[l.Name] = &claim{
		key: k, lease: l.Name, poke: make(chan struct{}, 1),
		owed: &debt{session: o.session.id, late: true},
	}
}

// current reads a lease from the server; nil: there is none.
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

// tidy forgets what is of no use any more. The first of the replicas also deletes the leases of those that are gone,
// and of clusters that nobody has served for long: if somebody wants one just then, it is created anew.
func (o *Owner) tidy(ctx context.Context) {
	named := map[string]bool{}
	var unused []*coordinationv1.Lease
	for _, l := range o.informer.List(o.options.Namespace, labels.Everything()) {
		named[holderOf(l)] = true
		if kind(l.Labels[KindLabel]) != replicaLease && holderOf(l) == "" && l.Spec.RenewTime != nil &&
			time.Since(l.Spec.RenewTime.Time) > freeFor {
			unused = append(unused, l)
		}
	}
	o.replicas.forget(named)
	o.mu.Lock()
	for name, at := range o.missed {
		if time.Since(at) > o.options.LeaseDuration {
			delete(o.missed, name)
		}
	}
	member := o.session != nil
	o.mu.Unlock()
	if all := o.replicas.eligible(""); !member || len(all) == 0 || all[0] != o.options.Identity {
		return
	}
	for name, m := range o.replicas.relics(relicAge * o.options.LeaseDuration) {
		o.discard(ctx, name, m)
	}
	for _, l := range unused {
		o.discard(ctx, l.Name, membership{uid: l.UID, version: l.ResourceVersion})
	}
}

func (o *Owner) discard(ctx context.Context, name string, m membership) {
	if o.limiter.Wait(ctx) != nil {
		return
	}
	err := o.try(ctx, func(ctx context.Context) error { return o.deleteExactly(ctx, name, m) })
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).V(2).Info("A lease that nobody needs stays for now", "lease", name, "err", err)
	}
}
