package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

// serve runs one tenure: it runs lead, renews the lease meanwhile, and releases it after lead has returned.
func (e *Elector) serve(ctx context.Context, lead func(context.Context) error) error {
	tenure, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	// This timer ends the tenure even while a renewal hangs. Every successful renewal resets it.
	deadlineTimer := time.AfterFunc(time.Until(e.deadline()), func() { cancel(e.lost()) })
	defer deadlineTimer.Stop()

	returned := make(chan error, 1) // capacity 1: the goroutine that runs lead sends once and never blocks
	go func() { returned <- lead(tenure) }()
	err, lost := e.renewUntil(tenure, cancel, deadlineTimer, returned)
	if lost != nil {
		klog.FromContext(ctx).Error(lost, "Stopped leading", "lease", e.lock.Describe())
		return errors.Join(lost, err)
	}
	if errors.Is(err, ErrWorkRemains) {
		return err
	}
	return errors.Join(err, e.release(ctx))
}

// renewUntil renews the lease until lead has returned, and returns lead's error as err. If the tenure ended before
// that, lost is the reason.
func (e *Elector) renewUntil(tenure context.Context, cancel context.CancelCauseFunc, deadlineTimer *time.Timer,
	returned <-chan error,
) (err, lost error) {
	ticker := time.NewTicker(e.options.RetryPeriod)
	defer ticker.Stop()
	for {
		select {
		case err := <-returned:
			if tenure.Err() != nil {
				return err, context.Cause(tenure)
			}
			return err, nil
		case <-tenure.Done():
			return <-returned, context.Cause(tenure)
		case <-ticker.C:
		}
		if err := e.attempt(tenure, e.renew); errors.Is(err, ErrLost) {
			e.stopLeading()
			cancel(err)
		} else if tenure.Err() == nil {
			// Even after an error, because the attempt may have found that an earlier renewal was accepted.
			deadlineTimer.Reset(time.Until(e.deadline()))
		}
	}
}

// deadline returns when the tenure ends unless the lease is renewed.
func (e *Elector) deadline() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.renewedAt.Add(e.options.RenewDeadline)
}

// lost returns the cause of a tenure that deadlineTimer ends.
func (e *Elector) lost() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lastErr != nil {
		return fmt.Errorf("%w: not renewed for %v: %w", ErrLost, e.options.RenewDeadline, e.lastErr)
	}
	return fmt.Errorf("%w: %s not renewed for %v", ErrLost, e.lock.Describe(), e.options.RenewDeadline)
}

// stopLeading makes Check fail from now on.
func (e *Elector) stopLeading() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.renewedAt = time.Time{}
}

// renew writes the lease, based on its last seen state. If the write is rejected, renew reads the lease. There are
// three possible reasons: an earlier renewal was accepted but its response was lost; something else, such as a label,
// was changed; or another process has taken the lease.
func (e *Elector) renew(ctx context.Context) error {
	e.mu.Lock()
	record := e.observed.record
	e.mu.Unlock()
	err := e.update(ctx, record)
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return err
	}
	sent := time.Now()
	current, err := e.read(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return e.create(ctx, sent) // deleted, and not yet taken by another process
	case err != nil:
		return fmt.Errorf("get lease %s: %w", e.lock.Describe(), err)
	case current.HolderIdentity != e.lock.Identity():
		e.observe(ctx, current)
		return fmt.Errorf("%w: %s is held by %q", ErrLost, e.lock.Describe(), current.HolderIdentity)
	}
	e.mu.Lock()
	e.slow++
	e.mu.Unlock()
	e.recordAccepted(current)
	return e.update(ctx, current)
}

// giveUp ends a campaign without success. If the outcome of a write is unknown, the write may have taken the lease
// after all. giveUp then reads the lease, and releases it if it has our identity, so that the next leader need not wait
// for it to expire.
func (e *Elector) giveUp(ctx context.Context) error {
	e.mu.Lock()
	unknown := len(e.unanswered) > 0
	e.mu.Unlock()
	if !unknown {
		return nil
	}
	lookup, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.options.RetryPeriod)
	defer cancel()
	current, err := e.read(lookup)
	if err != nil || current.HolderIdentity != e.lock.Identity() {
		return nil
	}
	if err := e.lock.Update(lookup, specOf(released(current))); err != nil {
		return fmt.Errorf("release lease %s: %w", e.lock.Describe(), err)
	}
	klog.FromContext(ctx).Info("Released the leader lease", "lease", e.lock.Describe())
	return nil
}

// releaseTries is how often a release is tried if it is rejected or gets no response.
const releaseTries = 3

// release writes the lease without a holder, so that the next leader need not wait for it to expire. It is called after
// the work has returned.
func (e *Elector) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.options.ReleaseTimeout())
	defer cancel()
	e.mu.Lock()
	record := e.observed.record
	e.mu.Unlock()
	e.stopLeading()

	var err error
	for range releaseTries {
		if err = e.lock.Update(ctx, specOf(released(record))); err == nil {
			e.observe(ctx, released(record))
			klog.FromContext(ctx).Info("Released the leader lease", "lease", e.lock.Describe())
			return nil
		}
		current, getErr := e.read(ctx)
		if apierrors.IsNotFound(getErr) || getErr == nil && current.HolderIdentity != e.lock.Identity() {
			return nil // nothing to release: the lease is gone, or an earlier try was accepted
		}
		if getErr == nil {
			record = current
		}
	}
	return fmt.Errorf("release lease %s: %w", e.lock.Describe(), err)
}
