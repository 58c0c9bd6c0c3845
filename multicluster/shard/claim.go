package shard

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"
)

// errClaimed is the error of Acquire for a lease that this process waits for or serves already.
var errClaimed = errors.New("this process already serves it or waits for it")

// claim is this process's interest in one lease: it waits for the lease, serves what it is for, or is releasing it.
type claim struct {
	key   key
	lease string // its name

	// wake has capacity 1. It holds a token when there is news for the goroutine that waits for the lease. Never
	// closed.
	wake chan struct{}

	// The following fields are guarded by the owner's lock.

	// waiting reports whether a goroutine waits for the lease.
	waiting bool
	// tenure is not nil while this replica serves.
	tenure *tenure
	// pending is the release of an ended tenure that is not written yet, or nil.
	pending *pendingRelease
	// free is when the lease was first seen free. Zero means that it is held.
	free time.Time
}

// pendingRelease is a release of a lease that is not known to be written.
type pendingRelease struct {
	session string
	// stuck means that work does not end, so the lease must expire.
	stuck bool
	// retry means that Release has given up writing it, so retryReleases does.
	retry bool
}

func (c *claim) notify() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// newClaim registers a claim of a lease, for a goroutine that waits for it.
func (o *Owner) newClaim(k key) (*claim, error) {
	name := leaseName(o.options.Fleet, k)
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.claims[name]; c != nil {
		if c.pending == nil || c.waiting {
			return nil, fmt.Errorf("%s %q: %w", k.kind, k.name, errClaimed)
		}
		c.waiting = true
		return c, nil
	}
	c := &claim{key: k, lease: name, wake: make(chan struct{}, 1), waiting: true}
	o.claims[name] = c
	return c, nil
}

// acquire waits for a lease and takes it.
func (o *Owner) acquire(ctx context.Context, k key, onReason func(string)) (*tenure, error) {
	c, err := o.newClaim(k)
	if err != nil {
		return nil, err
	}
	reported := ""
	report := func(why string) {
		if why != reported {
			reported = why
			onReason(why)
		}
	}
	for ctx.Err() == nil {
		next, lease, s := o.evaluate(c)
		report(next.reason)
		switch next.action {
		case take:
			t, err := o.take(ctx, c, lease, s)
			if t != nil {
				return t, nil
			}
			if err != nil {
				report(err.Error())
			}
			next.recheckAfter = o.options.retryAfter()
		case request:
			if err := o.requestHandover(ctx, lease, s); err != nil {
				report(err.Error())
			}
			next.recheckAfter = o.options.retryAfter()
		}
		c.wait(ctx, next.recheckAfter)
	}
	o.giveUp(c)
	return nil, context.Cause(ctx)
}

// wait returns when there is news, when atMost has passed (zero means no limit), or when ctx ends.
func (c *claim) wait(ctx context.Context, atMost time.Duration) {
	var late <-chan time.Time
	if atMost > 0 {
		timer := time.NewTimer(atMost)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-c.wake:
	case <-late:
	case <-ctx.Done():
	}
}

// giveUp ends a claim that did not get its lease. A write of it may still be under way: if it arrives, retryReleases
// releases the lease.
func (o *Owner) giveUp(c *claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.waiting = false
	if c.pending == nil {
		delete(o.claims, c.lease)
	}
}

// evaluate decides what a claim does next. It returns the lease and the session that it decided on.
func (o *Owner) evaluate(c *claim) (decision, *coordinationv1.Lease, *session) {
	in := decisionInput{
		now: time.Now(), self: o.options.Identity, settle: o.options.Settle,
		key: c.key.name, patience: o.options.Patience, replicas: o.replicas.eligible(o.options.Identity),
	}
	lease, _ := o.informer.Get(o.options.Namespace, c.lease)
	if lease != nil {
		in.holder, in.wanted = holderOf(lease), lease.Annotations[WantedAnnotation]
		in.state = o.replicas.state(in.holder, o.silentAfter())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.session
	in.leaving = o.leaving
	if s != nil {
		in.session, in.began = s.id, s.began
	}
	in.notMemberReason = o.notMemberReason
	if lease == nil {
		in.deletedAt, in.duration = o.deletedHeld[c.lease], o.options.LeaseDuration
	}
	switch {
	case !o.informer.HasSynced():
		return decision{reason: "waiting for the list of leases"}, nil, nil
	case c.pending != nil:
		return decision{reason: "this replica is still releasing it"}, nil, nil
	case lease != nil && o.isStaleLocked(lease):
		return decision{
			reason: "this replica has just released its lease", recheckAfter: o.options.retryAfter(),
		}, nil, nil
	case lease != nil && lease.Annotations[NameAnnotation] != c.key.name:
		return decision{reason: fmt.Sprintf("lease %s is in use for %q", c.lease, lease.Annotations[NameAnnotation])},
			nil, nil
	case !in.isFree():
		c.free = time.Time{}
	case c.free.IsZero():
		c.free = in.now
	}
	in.free = c.free
	return decide(&in), lease, s
}

// silentAfter is the time without a renewal after which a replica is reported as silent.
func (o *Owner) silentAfter() time.Duration { return o.options.RenewDeadline / 2 }

// review compares a lease in the informer with its claim. It ends the tenure if necessary, or wakes the goroutine that
// waits for the lease.
func (o *Owner) review(c *claim, l *coordinationv1.Lease) {
	replicas := o.replicas.eligible(o.options.Identity)
	o.mu.Lock()
	t := c.tenure
	o.mu.Unlock()
	switch {
	case t == nil:
		c.notify()
	case t.isNewer(l):
		// The informer does not show the tenure's write yet.
	case holderOf(l) != t.session.id:
		t.lose(fmt.Errorf("its lease is held by %q", holderOf(l)))
	case mustYield(o.options.Identity, l.Annotations[WantedAnnotation], c.key.name, replicas):
		t.yield()
	}
}

// reviewAll reviews all claims, after the set of replicas or this replica's membership has changed.
func (o *Owner) reviewAll(ctx context.Context) {
	o.mu.Lock()
	claims := make([]*claim, 0, len(o.claims))
	for _, c := range o.claims {
		claims = append(claims, c)
	}
	o.mu.Unlock()
	klog.FromContext(ctx).V(4).Info("Reviewing all claims", "count", len(claims))
	for _, c := range claims {
		if l, found := o.informer.Get(o.options.Namespace, c.lease); found {
			o.review(c, l)
		} else {
			c.notify()
		}
	}
}
