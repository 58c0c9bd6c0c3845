package shard

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"
)

// errClaimed says that Acquire was called for what this process claims or serves already.
var errClaimed = errors.New("it is claimed or served by this process already")

// claim is what this process has to do with one lease: it waits for it, serves what it is for, or owes its release.
type claim struct {
	key   key
	lease string // its name

	// poke has capacity 1: a token for the goroutine that waits for the lease that there is news. Never closed.
	poke chan struct{}

	// What follows is guarded by the owner's lock.

	// waited: a goroutine waits for the lease.
	waited bool
	// tenure is not nil while this replica serves.
	tenure *tenure
	// owed is what still has to be written into the lease of a tenure that is over; nil when nothing is.
	owed *debt
	// free is since when the lease has been seen free; zero: it is held.
	free time.Time
}

// debt is a release that was not answered yet.
type debt struct {
	session string
	// stuck: work does not end, so the lease has to run out.
	stuck bool
	// late: the tenure has given up writing it; the sweep does.
	late bool
}

func (c *claim) nudge() {
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

// enter makes the claim of a lease.
func (o *Owner) enter(k key) (*claim, error) {
	name := leaseName(o.options.Fleet, k)
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.claims[name]; c != nil {
		if c.owed == nil || c.waited {
			return nil, fmt.Errorf("%s %q: %w", k.kind, k.name, errClaimed)
		}
		c.waited = true
		return c, nil
	}
	c := &claim{key: k, lease: name, poke: make(chan struct{}, 1), waited: true}
	o.claims[name] = c
	return c, nil
}

// acquire waits for a lease and takes it.
func (o *Owner) acquire(ctx context.Context, k key, say func(string)) (*tenure, error) {
	c, err := o.enter(k)
	if err != nil {
		return nil, err
	}
	said := ""
	tell := func(why string) {
		if why != said {
			said = why
			say(why)
		}
	}
	for ctx.Err() == nil {
		next, lease, s := o.judge(c)
		tell(next.why)
		switch next.action {
		case take:
			t, err := o.take(ctx, c, lease, s)
			if t != nil {
				return t, nil
			}
			if err != nil {
				tell(err.Error())
			}
			next.again = o.options.retryAfter()
		case ask:
			if err := o.ask(ctx, lease, s); err != nil {
				tell(err.Error())
			}
			next.again = o.options.retryAfter()
		}
		c.wait(ctx, next.again)
	}
	o.giveUp(c)
	return nil, context.Cause(ctx)
}

// wait returns when there is news, after a while, or when ctx ends.
func (c *claim) wait(ctx context.Context, atMost time.Duration) {
	var late <-chan time.Time
	if atMost > 0 {
		timer := time.NewTimer(atMost)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-c.poke:
	case <-late:
	case <-ctx.Done():
	}
}

// giveUp ends a claim that came to nothing. A write of it may still be under way: if it arrives, the sweep releases
// the lease.
func (o *Owner) giveUp(c *claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.waited = false
	if c.owed == nil {
		delete(o.claims, c.lease)
	}
}

// judge decides what a claim does next.
func (o *Owner) judge(c *claim) (decision, *coordinationv1.Lease, *session) {
	look := outlook{
		now: time.Now(), self: o.options.Identity, settle: o.options.Settle,
		key: c.key.name, patience: o.options.Patience, replicas: o.replicas.eligible(o.options.Identity),
	}
	lease, _ := o.informer.Get(o.options.Namespace, c.lease)
	if lease != nil {
		look.holder, look.wanted = holderOf(lease), lease.Annotations[WantedAnnotation]
		look.state = o.replicas.state(look.holder, o.quiet())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.session
	look.leaving = o.leaving
	if s != nil {
		look.session, look.began = s.id, s.began
	}
	look.why = o.whyNot
	if lease == nil {
		look.missed, look.duration = o.missed[c.lease], o.options.LeaseDuration
	}
	switch {
	case !o.informer.HasSynced():
		return decision{why: "it is being found out who serves it"}, nil, nil
	case c.owed != nil:
		return decision{why: "an earlier time of serving it here has not ended yet"}, nil, nil
	case lease != nil && o.behindLocked(lease):
		return decision{why: "its lease was just released here", again: o.options.retryAfter()}, nil, nil
	case lease != nil && lease.Annotations[NameAnnotation] != c.key.name:
		return decision{why: fmt.Sprintf("lease %s is in use for %q", c.lease, lease.Annotations[NameAnnotation])},
			nil, nil
	case !look.isFree():
		c.free = time.Time{}
	case c.free.IsZero():
		c.free = look.now
	}
	look.free = c.free
	return decide(&look), lease, s
}

// quiet is how long nothing is heard of a replica before people are told.
func (o *Owner) quiet() time.Duration { return o.options.RenewDeadline / 2 }

// review tells a tenure what became of its lease, or who waits for it that there is news. l is as the informer shows
// it.
func (o *Owner) review(c *claim, l *coordinationv1.Lease) {
	replicas := o.replicas.eligible(o.options.Identity)
	o.mu.Lock()
	t := c.tenure
	o.mu.Unlock()
	switch {
	case t == nil:
		c.nudge()
	case t.isNewer(l):
		// What the tenure wrote does not show yet.
	case holderOf(l) != t.session.id:
		t.lose(fmt.Errorf("its lease is held by %q", holderOf(l)))
	case mustYield(o.options.Identity, l.Annotations[WantedAnnotation], c.key.name, replicas):
		t.yield()
	}
}

// reviewAll is for when there are other replicas, or this one became or ceased to be one.
func (o *Owner) reviewAll(ctx context.Context) {
	o.mu.Lock()
	claims := make([]*claim, 0, len(o.claims))
	for _, c := range o.claims {
		claims = append(claims, c)
	}
	o.mu.Unlock()
	klog.FromContext(ctx).V(4).Info("Looking at all clusters again", "count", len(claims))
	for _, c := range claims {
		if l, found := o.informer.Get(o.options.Namespace, c.lease); found {
			o.review(c, l)
		} else {
			c.nudge()
		}
	}
}
