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

	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/multicluster"
)

// tenure is a period in which this replica holds the lease of a cluster. It implements [multicluster.Tenure].
//
// Invariant: the lease names the tenure's session from before the tenure begins until Release has written the lease, or
// until another replica has taken it because the session has expired.
type tenure struct {
	owner   *Owner
	claim   *claim
	session *session

	// ending is closed by yield, and lost by lose. Never sent on.
	ending, lost         chan struct{}
	endingOnce, lostOnce sync.Once
	// released means that Release was called.
	released atomic.Bool
	// cause is why the tenure was lost. It is set before lost is closed.
	cause error
}

var _ multicluster.Tenure = (*tenure)(nil)

func (o *Owner) newTenure(c *claim, s *session) *tenure {
	return &tenure{owner: o, claim: c, session: s, ending: make(chan struct{}), lost: make(chan struct{})}
}

// Ending implements [multicluster.Tenure].
func (t *tenure) Ending() <-chan struct{} { return t.ending }

// Lost implements [multicluster.Tenure].
func (t *tenure) Lost() <-chan struct{} { return t.lost }

func (t *tenure) yield() { t.endingOnce.Do(func() { close(t.ending) }) }

func (t *tenure) lose(cause error) {
	t.lostOnce.Do(func() {
		t.cause = cause
		t.owner.count(&t.owner.stats.Lost)
		close(t.lost)
	})
}

// Check implements [multicluster.Tenure]. It compares the session's deadline with the clock.
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

// take writes this replica's session into lease, which is free or names the session already. If lease is nil, take
// creates it. It returns neither a tenure nor an error if the lease has changed since it was read: another replica was
// faster, or a person has deleted the lease. The tenure that it returns may already have ended.
func (o *Owner) take(ctx context.Context, c *claim, lease *coordinationv1.Lease, s *session) (*tenure, error) {
	// The request does not end with ctx. Even if it were canceled, it could still arrive, so take has to wait for its
	// answer.
	err := o.write(ctx, context.WithoutCancel(ctx), s.check, o.leaseWith(c.key, lease, s.id))
	switch {
	case isOutdated(err):
		o.count(&o.stats.Conflicts)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("take its lease: %w", err)
	}
	klog.FromContext(ctx).V(2).Info("Took the lease", "lease", c.lease, "previousHolder", holderOf(lease))
	t := o.newTenure(c, s)
	o.mu.Lock()
	o.stats.Taken++
	c.tenure, c.waiting = t, false
	expired := o.session != s
	o.mu.Unlock()
	if expired {
		t.lose(errors.New("the membership was lost while the lease was being taken"))
	} else {
		o.review(c) // The lease may have changed before c.tenure was set.
	}
	return t, nil
}

// requestHandover requests a lease from its holder, in the name of this replica's session.
func (o *Owner) requestHandover(ctx context.Context, c *claim, s *session) error {
	if err := o.waitForLimit(ctx); err != nil {
		return err
	}
	o.count(&o.stats.HandoverRequests)
	return o.annotate(ctx, c.lease, WantedAnnotation, s.id)
}

// release is a release of a lease that may not have been written yet.
type release struct {
	// session is the tenure's session. holder replaces it in the lease; it is "", or a stuckHolder if work does not
	// end.
	session, holder string
	// retry means that retryReleases has to write the release, because Release does not try any more.
	retry bool
}

// errReleased ends the write of a release if another goroutine has written the release meanwhile.
var errReleased = errors.New("the lease was released")

// Release implements [multicluster.Tenure]. If the write fails, [Owner.Run] tries again until this replica's session
// ends; the lease then expires with the session.
func (t *tenure) Release(ctx context.Context, stuck error) {
	if t.released.Swap(true) {
		return
	}
	o, c := t.owner, t.claim
	r := &release{session: t.session.id}
	if stuck != nil {
		r.holder = stuckHolder(t.session.id)
	}
	o.mu.Lock()
	o.stats.ended(t, stuck)
	c.tenure = nil
	expired := o.session != t.session
	if !expired {
		c.release = r
	}
	o.dropLocked(c)
	o.mu.Unlock()
	if expired {
		return
	}
	if err := o.writeRelease(ctx, c, r); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot release lease; trying again", "lease", c.lease)
	}
	o.mu.Lock()
	r.retry = true
	o.mu.Unlock()
}

// writeRelease writes a release that is still pending. If the lease has changed, it reads the lease and tries once
// more.
func (o *Owner) writeRelease(ctx context.Context, c *claim, r *release) error {
	pending := func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if c.release != r {
			return errReleased
		}
		return nil
	}
	for last, read := o.latest(c.lease), false; holderOf(last) == r.session; read = true {
		// Check pending after the lease was read. Another call may have written the release, and this replica may have
		// taken the lease again since.
		err := o.write(ctx, ctx, pending, o.leaseWith(c.key, last, r.holder))
		if isOutdated(err) && !read { // for instance because the lease was annotated
			if last, err = o.read(ctx, c.lease); err == nil {
				continue
			}
		}
		switch {
		case errors.Is(err, errReleased):
			return nil
		case err != nil:
			return fmt.Errorf("release lease %s: %w", c.lease, err)
		}
		break
	}
	o.mu.Lock()
	if c.release == r {
		c.release = nil
		o.dropLocked(c)
	}
	o.mu.Unlock()
	c.notify()
	return nil
}

// isOutdated reports whether a write was rejected because the lease has changed since it was read.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// write creates l if it has no resource version. Otherwise it updates the lease, if l has the lease's current version.
// Before the request, write waits for the rate limit until ctx is done, and then calls check if that is not nil.
// sending is the context of the request.
func (o *Owner) write(ctx, sending context.Context, check func() error, l *coordinationv1.Lease) error {
	if err := o.waitForLimit(ctx); err != nil {
		return err
	}
	if check != nil {
		if err := check(); err != nil {
			return err
		}
	}
	var answer *coordinationv1.Lease
	err := o.try(sending, func(ctx context.Context) (err error) {
		if l.ResourceVersion == "" {
			answer, err = o.leases.Create(ctx, l, metav1.CreateOptions{})
		} else {
			answer, err = o.leases.Update(ctx, l, metav1.UpdateOptions{})
		}
		return err
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		o.written[l.Name] = answer
	} else if apierrors.IsNotFound(err) {
		delete(o.written, l.Name)
	}
	return err
}

// read reads a lease from the server. It returns nil if there is none.
func (o *Owner) read(ctx context.Context, name string) (l *coordinationv1.Lease, err error) {
	err = o.try(ctx, func(ctx context.Context) (err error) {
		l, err = o.leases.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return l, err
}

// annotate sets an annotation of a lease, even if the lease has changed since it was read.
func (o *Owner) annotate(ctx context.Context, lease, annotation, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotation, value)
	if err := o.try(ctx, func(ctx context.Context) error {
		_, err := o.leases.Patch(ctx, lease, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("annotate lease %s: %w", lease, err)
	}
	return nil
}

// remove deletes a lease, unless it has changed since it was read.
func (o *Owner) remove(ctx context.Context, l *coordinationv1.Lease) error {
	err := o.try(ctx, func(ctx context.Context) error {
		return o.leases.Delete(ctx, l.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion},
		})
	})
	if isOutdated(err) {
		return nil
	}
	return err
}

func (o *Owner) waitForLimit(ctx context.Context) error {
	if err := o.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("wait for the rate limit of leases: %w", err)
	}
	return nil
}

// try sends one request, with a timeout. It counts an error, unless the error means that the lease has changed.
func (o *Owner) try(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, o.options.RetryPeriod)
	defer cancel()
	err := request(ctx)
	if err != nil && !isOutdated(err) {
		o.count(&o.stats.Errors)
	}
	return err
}
