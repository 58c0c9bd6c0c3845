package shard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/internal/versions"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/multicluster"
)

// tenure is a period in which this replica serves what a lease is for. It implements [multicluster.Tenure].
//
// Invariant: the lease names its session from before the tenure begins until Release has written the lease, or another
// replica has taken it because the session has expired.
type tenure struct {
	owner   *Owner
	claim   *claim
	session *session
	// written is the lease as this tenure wrote it.
	written *coordinationv1.Lease

	// ending is closed by yield, lost by lose, each once; nobody sends on them.
	ending, lost         chan struct{}
	endingOnce, lostOnce sync.Once
	// released reports whether Release was called.
	released atomic.Bool
	// cause is why the tenure was lost. It is set before lost is closed.
	cause error
}

var _ multicluster.Tenure = (*tenure)(nil)

func (o *Owner) newTenure(c *claim, s *session, written *coordinationv1.Lease) *tenure {
	return &tenure{
		owner: o, claim: c, session: s, written: written, ending: make(chan struct{}),
		lost: make(chan struct{}),
	}
}

// Ending implements [multicluster.Tenure].
func (t *tenure) Ending() <-chan struct{} { return t.ending }

// Lost implements [multicluster.Tenure].
func (t *tenure) Lost() <-chan struct{} { return t.lost }

func (t *tenure) yield() { t.endingOnce.Do(func() { close(t.ending) }) }

func (t *tenure) lose(cause error) {
	t.lostOnce.Do(func() {
		t.cause = cause
		t.owner.counts.lost.Add(1)
		close(t.lost)
	})
}

// Check implements [multicluster.Tenure]. It compares the session's deadline with the clock at every call.
func (t *tenure) Check() error {
	if t.released.Load() {
		return fmt.Errorf("%w: lease %s was released", leader.ErrLost, t.claim.lease)
	}
	select {
	case <-t.lost:
		return fmt.Errorf("%w: lease %s: %w", leader.ErrLost, t.claim.lease, t.cause)
	default:
		return t.session.check()
	}
}

// isNewer reports whether the tenure's write is newer than l, the lease in the informer.
func (t *tenure) isNewer(l *coordinationv1.Lease) bool {
	return versions.Earlier(l.ResourceVersion, t.written.ResourceVersion)
}

// recordRelease records the version that a release has written. Until the informer shows it, the informer's lease is
// stale.
func (o *Owner) recordRelease(l *coordinationv1.Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.released[l.Name] = l.ResourceVersion
}

// isStaleLocked reports whether l, the lease in the informer, is older than this replica's release of it.
func (o *Owner) isStaleLocked(l *coordinationv1.Lease) bool {
	version, wrote := o.released[l.Name]
	return wrote && versions.Earlier(l.ResourceVersion, version)
}

// take writes this replica's session into lease, which nobody can hold any more; nil creates it. It returns nil and no
// error if the lease is not as it was in the informer: another replica was faster, or somebody deleted it. The tenure
// that it returns may have ended.
func (o *Owner) take(ctx context.Context, c *claim, lease *coordinationv1.Lease, s *session) (*tenure, error) {
	if err := o.limiter.Wait(ctx); err != nil {
		return nil, fmt.Errorf("wait for the rate limit of leases: %w", err)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	// Not ctx: a write that was sent may still arrive, so take must wait for its answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.options.retryAfter())
	defer cancel()
	written, err := o.write(ctx, o.leaseWith(c.key, c.lease, lease, s.id))
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		o.counts.conflicts.Add(1)
		return nil, nil
	case err != nil:
		o.counts.errors.Add(1)
		return nil, fmt.Errorf("write its lease: %w", err)
	}
	o.counts.taken.Add(1)
	klog.FromContext(ctx).V(2).Info("Took the lease", "lease", c.lease, "previousHolder", holderBefore(lease))
	t := o.newTenure(c, s, written)
	o.mu.Lock()
	c.tenure, c.waiting = t, false
	expired := o.session != s
	o.mu.Unlock()
	if expired {
		t.lose(errors.New("the membership was lost while the lease was being taken"))
	} else if l, found := o.informer.Get(o.options.Namespace, c.lease); found {
		o.review(c, l) // the lease may have changed between the write and the tenure
	}
	return t, nil
}

func holderBefore(l *coordinationv1.Lease) string {
	if l == nil {
		return ""
	}
	return holderOf(l)
}

// leaseWith returns the lease before with another holder, or a new lease if before is nil.
func (o *Owner) leaseWith(k key, name string, before *coordinationv1.Lease, holder string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: o.options.Namespace, Name: name}}
	now := metav1.NowMicro()
	if before != nil {
		l = before.DeepCopy()
	}
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Labels[FleetLabel], l.Labels[KindLabel] = o.options.Fleet, string(k.kind)
	l.Annotations[NameAnnotation] = k.name
	delete(l.Annotations, WantedAnnotation)
	if before != nil && holderOf(before) != holder {
		l.Spec.LeaseTransitions = ptr.To(ptr.Deref(before.Spec.LeaseTransitions, 0) + 1)
	}
	l.Spec.HolderIdentity = &holder
	l.Spec.LeaseDurationSeconds = ptr.To(int32(o.options.LeaseDuration.Seconds()))
	l.Spec.RenewTime = &now
	if before == nil || holderOf(before) != holder {
		l.Spec.AcquireTime = &now
	}
	return l
}

// write creates a lease without a resource version. It updates a lease that has one, if that is still the current
// version.
func (o *Owner) write(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if l.ResourceVersion == "" {
		return o.leases.Create(ctx, l, metav1.CreateOptions{})
	}
	return o.leases.Update(ctx, l, metav1.UpdateOptions{})
}

// requestHandover requests a lease from its holder, in the name of this replica's session.
func (o *Owner) requestHandover(ctx context.Context, lease *coordinationv1.Lease, s *session) error {
	if err := o.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("wait for the rate limit of leases: %w", err)
	}
	o.counts.handoverRequests.Add(1)
	return o.annotate(ctx, lease.Name, WantedAnnotation, s.id)
}

func (o *Owner) annotate(ctx context.Context, lease, annotation, value string) error {
	ctx, cancel := context.WithTimeout(ctx, o.options.retryAfter())
	defer cancel()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotation, value)
	if _, err := o.leases.Patch(ctx, lease, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		o.counts.errors.Add(1)
		return fmt.Errorf("annotate lease %s: %w", lease, err)
	}
	return nil
}

// Release implements [multicluster.Tenure]. If the write fails, [Owner.Run] retries it as long as this replica's
// session lives. When the session ends, the lease expires with it.
func (t *tenure) Release(ctx context.Context, stuck error) {
	if t.released.Swap(true) {
		return
	}
	o, c := t.owner, t.claim
	d := &pendingRelease{session: t.session.id, stuck: stuck != nil}
	o.mu.Lock()
	c.tenure = nil
	if o.session == t.session {
		c.pending = d
	} else {
		o.dropLocked(c)
	}
	pending := c.pending != nil
	o.mu.Unlock()
	o.counts.ended(t, stuck)
	if !pending {
		return
	}
	last := t.written
	if l, found := o.informer.Get(o.options.Namespace, c.lease); found && !t.isNewer(l) {
		last = l
	}
	if err := o.writeRelease(ctx, c, d, last); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot release lease; trying again", "lease", c.lease)
	}
	o.mu.Lock()
	d.retry = true // if the release is still pending, retryReleases writes it
	o.mu.Unlock()
}

// releaseTries bounds how often a release is tried at once when the server rejects it.
const releaseTries = 3

// writeRelease writes a pending release. last is the lease as last seen.
func (o *Owner) writeRelease(ctx context.Context, c *claim, d *pendingRelease, last *coordinationv1.Lease) error {
	if err := o.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("wait for the rate limit of leases: %w", err)
	}
	to := ""
	if d.stuck {
		to = stuckHolder(d.session)
	}
	var err error
	for range releaseTries {
		if last == nil || holderOf(last) != d.session {
			o.finishRelease(c)
			return nil
		}
		if err = o.try(ctx, func(ctx context.Context) error {
			written, err := o.leases.Update(ctx, o.leaseWith(c.key, c.lease, last, to), metav1.UpdateOptions{})
			if err == nil {
				o.recordRelease(written)
			}
			return err
		}); err == nil {
			o.finishRelease(c)
			return nil
		}
		if getErr := o.try(ctx, func(ctx context.Context) error {
			last, err = o.leases.Get(ctx, c.lease, metav1.GetOptions{})
			return err
		}); apierrors.IsNotFound(getErr) {
			last = nil
		} else if getErr != nil {
			return fmt.Errorf("release lease %s: %w", c.lease, getErr)
		}
	}
	return fmt.Errorf("release lease %s: %w", c.lease, err)
}

// try sends one request, with a timeout.
func (o *Owner) try(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, o.options.retryAfter())
	defer cancel()
	err := request(ctx)
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		o.counts.errors.Add(1)
	}
	return err
}

// finishRelease records that the release is no longer pending, and wakes the goroutine that waits for the lease.
func (o *Owner) finishRelease(c *claim) {
	o.mu.Lock()
	c.pending = nil
	o.dropLocked(c)
	o.mu.Unlock()
	c.notify()
}

// dropLocked deletes a claim that is neither served, waited for, nor being released.
func (o *Owner) dropLocked(c *claim) {
	if c.tenure == nil && c.pending == nil && !c.waiting {
		delete(o.claims, c.lease)
	}
}
