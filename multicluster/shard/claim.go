package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/multicluster"
)

// errClaimed is the error of Acquire for a lease that this process already waits for or holds.
var errClaimed = errors.New("this process already serves it or waits for it")

// claim records what this process does with one lease: it waits for the lease, holds it, or is releasing it.
type claim struct {
	key   key
	lease string // its name

	// wake receives a token when the goroutine that waits for the lease should decide again. Capacity 1; never closed.
	wake chan struct{}

	// The following fields are guarded by the owner's lock.

	// waiting means that a goroutine waits for the lease.
	waiting bool
	// tenure is not nil while this replica holds the lease.
	tenure *tenure
	// release is not nil while the release of an ended tenure may not have been written yet.
	release *release
	// free is when this replica first saw the lease free; zero if the lease is held.
	free time.Time
}

func (c *claim) notify() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// claimLocked returns the claim for a key's lease. It makes the claim if there is none.
func (o *Owner) claimLocked(k key) *claim {
	name := leaseName(o.options.Fleet, k)
	c := o.claims[name]
	if c == nil {
		c = &claim{key: k, lease: name, wake: make(chan struct{}, 1)}
		o.claims[name] = c
	}
	return c
}

// dropLocked deletes the claim if the process does not wait for the lease, hold it, or release it any more.
func (o *Owner) dropLocked(c *claim) {
	if c.tenure == nil && c.release == nil && !c.waiting {
		delete(o.claims, c.lease)
	}
}

// acquire waits for a lease and takes it. If it fails, a write may still be on its way to the server. If that write
// arrives, retryReleases releases the lease.
func (o *Owner) acquire(ctx context.Context, k key, onReason func(string)) (multicluster.Tenure, error) {
	o.mu.Lock()
	c := o.claimLocked(k)
	claimed := c.tenure != nil || c.waiting
	if !claimed {
		c.waiting = true
	}
	o.mu.Unlock()
	if claimed {
		return nil, fmt.Errorf("%s %q: %w", k.kind, k.name, errClaimed)
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
		var t *tenure
		var err error
		switch next.action {
		case take:
			t, err = o.take(ctx, c, lease, s)
		case request:
			err = o.requestHandover(ctx, c, s)
		}
		switch {
		case t != nil:
			return t, nil
		case err != nil:
			report(err.Error())
		}
		if next.action != wait || s == nil {
			next.recheckAfter = o.options.RetryPeriod
		}
		sleep(ctx, c.wake, next.recheckAfter)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c.waiting = false
	o.dropLocked(c)
	return nil, context.Cause(ctx)
}

// evaluate decides what to do next about a claim. It also returns the lease and the session that the decision is based
// on.
func (o *Owner) evaluate(c *claim) (decision, *coordinationv1.Lease, *session) {
	lease := o.latest(c.lease)
	in := decisionInput{
		now: time.Now(), self: o.options.Identity, settle: o.options.Settle, key: c.key.name,
		patience: o.options.Patience, duration: o.options.LeaseDuration,
		replicas: o.replicas.eligible(o.options.Identity), holder: holderOf(lease),
	}
	if lease != nil {
		in.wanted = lease.Annotations[WantedAnnotation]
		in.state = o.replicas.state(in.holder, o.options.RenewDeadline/2)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.session
	if s != nil {
		in.session, in.began = s.id, s.began
	} else {
		in.notMemberReason = o.whyNotMemberLocked()
	}
	in.leaving = o.leaving
	if lease == nil {
		in.deletedAt = o.deletedWhileHeld[c.lease]
	}
	switch {
	case !o.informer.HasSynced():
		return decision{reason: "waiting for the list of leases"}, nil, nil
	case c.release != nil:
		return decision{reason: "this replica is still releasing it"}, nil, nil
	case lease != nil && keyOf(lease).name != c.key.name:
		return decision{reason: fmt.Sprintf("lease %s is in use for %q", c.lease, keyOf(lease).name)}, nil, nil
	}
	if !in.isFree() {
		c.free = time.Time{}
	} else if c.free.IsZero() {
		c.free = in.now
	}
	in.free = c.free
	return decide(&in), lease, s
}

// review reacts to a change of a lease or of the replicas. It ends the claim's tenure if the lease requires that. If
// there is no tenure, it wakes the goroutine that waits for the lease.
func (o *Owner) review(c *claim) {
	o.mu.Lock()
	t := c.tenure
	o.mu.Unlock()
	l := o.latest(c.lease) // read after c.tenure, so that it includes the write that began the tenure
	switch {
	case t == nil:
		c.notify()
	case l == nil:
		t.lose(errors.New("its lease was deleted"))
	case holderOf(l) != t.session.id:
		t.lose(fmt.Errorf("its lease is held by %q", holderOf(l)))
	case mustYield(o.options.Identity, l.Annotations[WantedAnnotation], c.key.name,
		o.replicas.eligible(o.options.Identity)):
		t.yield()
	}
}

// reviewAll reviews all claims. It is called when the set of replicas, or this replica's membership, has changed.
func (o *Owner) reviewAll(ctx context.Context) {
	o.mu.Lock()
	claims := slices.Collect(maps.Values(o.claims))
	o.mu.Unlock()
	klog.FromContext(ctx).V(4).Info("Reviewing all claims", "count", len(claims))
	for _, c := range claims {
		o.review(c)
	}
}
