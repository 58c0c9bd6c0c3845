package controller

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// pass is one reconcile of one pool with a valid range.
type pass struct {
	*poolReconciler
	pool   *v1alpha1.IPPool
	key    client.ObjectKey
	cidr   netip.Prefix
	helper *controllerutil.PatchHelper
	// news holds the events for the status, which are recorded once it was written.
	news []news
}

// news is something in the status that a user should attend to.
type news struct{ reason, message string }

// run releases what nobody needs, and writes the resulting status.
func (p *pass) run(ctx context.Context) (ctrl.Result, error) {
	all := allocationsOf(p.pool, p.cidr)
	found, next, err := p.look(ctx, all)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(found.orphans) > 0 {
		if err := p.takeBack(ctx, found); err != nil {
			return ctrl.Result{}, err
		}
		all = allocationsOf(p.pool, p.cidr)
	}
	reserved, err := p.reservationsOf(ctx, p.pool, all)
	if err != nil {
		return ctrl.Result{}, err
	}
	fill(&p.pool.Status, p.cidr, all, count(reserved))
	p.pool.Status.OrphanedIPs, p.pool.Status.PendingPods = 0, int32(found.pending)
	p.options.Metrics.pool(p.key, len(all))
	if err := p.warnings(ctx, found); err != nil {
		return ctrl.Result{}, err
	}
	s, rest := p.state(found, len(all))
	if next == 0 || (rest > 0 && rest < next) {
		next = rest
	}
	return ctrl.Result{RequeueAfter: next}, p.conclude(ctx, s)
}

// state returns the state of the pool and, if that reports what was done, how long to show it.
func (p *pass) state(found survey, allocations int) (s state, rest time.Duration) {
	switch {
	case found.pending > 0:
		return reconciling(ReasonReconciling, "waiting for pending pods to be scheduled"), 0
	case len(found.orphans) > 0:
		return ready(ReasonOrphansCleaned, "cleaned %d orphaned allocation(s)", len(found.orphans)), p.options.ShowFor
	}
	if s, rest := announced(p.pool.Status.Conditions, p.options.ShowFor); rest > 0 {
		return s, rest
	}
	if allocations == 0 {
		return ready(ReasonReconciled, "no allocations to reconcile"), 0
	}
	return ready(ReasonReconciled, "all allocations verified"), 0
}

// look finds the allocations that nobody needs. It asks the cache first. The cache may lack a Pod that the pool already
// refers to, so look then asks the server. next is when to look again if nothing happens before.
func (p *pass) look(ctx context.Context, all []allocation) (found survey, next time.Duration, err error) {
	cached := map[client.ObjectKey]*corev1.Pod{}
	for _, a := range all {
		if _, known := cached[a.pod]; known || !a.named {
			continue
		}
		pod := &corev1.Pod{}
		if err := p.Get(ctx, a.pod, pod, client.ReadOnly); client.IgnoreNotFound(err) != nil {
			return survey{}, 0, fmt.Errorf("get pod %s: %w", a.PodRef, err)
		} else if err != nil {
			pod = nil
		}
		cached[a.pod] = pod
	}
	found = p.options.examine(all, func(key client.ObjectKey) *corev1.Pod { return cached[key] })
	ripe, next := p.seen.ripe(p.key, found.unlisted, p.options.MismatchGrace)
	candidates := append(found.orphans, ripe...)
	if len(candidates) == 0 {
		return found, next, nil
	}
	if found.reserved, err = p.reservationsOf(ctx, p.pool, candidates); err != nil {
		return survey{}, 0, err
	}
	asked := map[client.ObjectKey]bool{}
	for _, a := range candidates {
		if a.named {
			asked[a.pod] = true
		}
	}
	live, err := livePods(ctx, p, asked)
	if err != nil {
		return survey{}, 0, err
	}
	confirmed := p.options.examine(candidates, func(key client.ObjectKey) *corev1.Pod { return live[key] })
	found.orphans = append(confirmed.orphans, confirmed.unlisted...)
	found.pending += confirmed.pending
	return found, next, nil
}

// takeBack deletes the reservations of the orphans, then the orphans themselves.
func (p *pass) takeBack(ctx context.Context, found survey) error {
	orphans := found.orphans
	if err := p.release(ctx, p.pool, orphans, found.reserved); err != nil {
		p.pool.Status.OrphanedIPs = int32(len(orphans))
		s := reconciling(ReasonCleanupFailed, "the reservations of %d orphaned allocation(s) cannot be deleted",
			len(orphans))
		return errors.Join(err, p.conclude(ctx, s))
	}
	for _, a := range orphans {
		delete(p.pool.Spec.Allocations, a.key)
	}
	if err := p.helper.Patch(ctx, p.pool); err != nil {
		return err // if the pool has changed in the meantime, the next pass looks again
	}
	p.options.Metrics.cleanedUp(p.key, len(orphans))
	p.recorder.Eventf(p.pool, corev1.EventTypeNormal, "OrphanedAllocationsCleaned",
		"removed %d orphaned IP allocation(s)", len(orphans))
	ctrl.LoggerFrom(ctx).Info("Orphaned allocations were taken back", "count", len(orphans))
	return nil
}

// warnings sets the conditions about oddities that do not prevent the pool from working.
func (p *pass) warnings(ctx context.Context, found survey) error {
	others, err := p.overlaps(ctx, p.pool, p.cidr)
	if err != nil {
		return err
	}
	for _, w := range []struct {
		condition, format string
		names             []string
	}{
		{RangeOverlap, "the range overlaps with: %s", others},
		{
			NetworkStatusUnreadable, "the network status cannot be read, and the address counts as in use, of: %s",
			found.unreadable,
		},
	} {
		message := ""
		if len(w.names) > 0 {
			message = fmt.Sprintf(w.format, some(w.names))
		}
		if warn(&p.pool.Status.Conditions, p.pool.Generation, w.condition, message) {
			p.news = append(p.news, news{w.condition, message})
		}
	}
	return nil
}

// conclude writes the status, if it has changed.
func (p *pass) conclude(ctx context.Context, s state) error {
	if s.set(&p.pool.Status.Conditions, p.pool.Generation) && s.is == conditions.IsStalled {
		p.news = append(p.news, news{s.reason, s.message})
	}
	if err := p.helper.Patch(ctx, p.pool); err != nil {
		return err
	}
	for _, n := range p.news {
		p.recorder.Eventf(p.pool, corev1.EventTypeWarning, n.reason, "%s", n.message)
	}
	return nil
}

func count(reserved map[string][]*v1alpha1.OverlappingRangeIPReservation) (n int) {
	for _, of := range reserved {
		n += len(of)
	}
	return n
}
