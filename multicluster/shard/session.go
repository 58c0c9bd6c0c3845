package shard

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/leader"
)

// session is a period in which this replica is a member. Every lease that it takes names the session, and is held
// exactly as long as the session is. One request every retry period renews the session, however many clusters there
// are.
type session struct {
	id    string
	began time.Time
	// check returns nil while no other replica can consider the session expired.
	check func() error
}

// validTimes returns an error if the times of a membership do not fit together.
func validTimes(o leader.Options) error {
	_, err := leader.New(&resourcelock.LeaseLock{LockConfig: resourcelock.ResourceLockConfig{Identity: "any"}}, o)
	return err
}

// runSessions makes this replica a member, and again whenever it has lost its membership, until ctx is done.
func (o *Owner) runSessions(ctx context.Context) {
	for ctx.Err() == nil {
		id := newSession(o.options.Identity)
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: o.options.Namespace, Name: o.lease},
			Client:     o.client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: id},
			Labels:     map[string]string{FleetLabel: o.options.Fleet, KindLabel: string(replicaLease)},
		}
		elector, err := leader.New(lock, o.options.Options)
		if err != nil {
			panic(err) // New has validated the options
		}
		reported := make(chan struct{}) // closed when reportCampaign has returned; nobody sends
		campaign, end := context.WithCancel(ctx)
		go func() {
			defer close(reported)
			o.reportCampaign(campaign, elector)
		}()
		// No logger: the elector's messages are about leaders, and a member is not one.
		err = elector.Run(klog.NewContext(ctx, klog.Logger{}), func(tenure context.Context) error {
			end()
			return o.runSession(ctx, tenure, &session{id: id, began: time.Now(), check: elector.Check})
		})
		end()
		<-reported
		switch {
		case errors.Is(err, leader.ErrWorkRemains):
			klog.FromContext(ctx).Error(err, "Replica leaves the fleet with unreleased leases; they will expire",
				"session", id)
		case err != nil:
			klog.FromContext(ctx).Error(err, "Replica is no longer a member of the fleet", "session", id)
		case ctx.Err() != nil:
			o.deleteOwnLease(ctx)
		}
	}
}

// reportCampaign reports why this replica is not a member, while it tries to become one.
func (o *Owner) reportCampaign(ctx context.Context, elector *leader.Elector) {
	ticker := time.NewTicker(o.options.RetryPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		status, why := elector.Status(), "it is joining"
		switch {
		case status.Err != nil:
			why = status.Err.Error()
		case status.Holder != "":
			why = fmt.Sprintf("session %s has not expired yet", status.Holder)
		}
		o.mu.Lock()
		changed := o.session == nil && o.notMemberReason != why
		if changed {
			o.notMemberReason = why
		}
		o.mu.Unlock()
		if changed {
			klog.FromContext(ctx).Info("Replica is not a member of the fleet", "reason", why)
			o.reviewAll(ctx)
		}
	}
}

// runSession runs one session until ctx is done, or until tenure ends because other replicas may consider the session
// expired.
func (o *Owner) runSession(ctx, tenure context.Context, s *session) error {
	klog.FromContext(ctx).Info("Replica is a member of the fleet", "session", s.id)
	o.enterSession(ctx, s)
	defer o.leaveSession(ctx, s, tenure)
	again := time.NewTicker(o.options.RetryPeriod)
	defer again.Stop()
	left := o.leaveCalled
	for {
		select {
		case <-tenure.Done():
			return nil
		case <-ctx.Done():
			return o.finishReleases(ctx, tenure)
		case <-left:
			if err := o.annotate(tenure, o.lease, LeavingAnnotation, s.id); err != nil {
				klog.FromContext(ctx).Error(err, "Cannot announce that this replica is leaving")
				select {
				case <-again.C:
				case <-tenure.Done():
				case <-ctx.Done():
				}
			} else {
				left = nil
			}
		}
	}
}

func (o *Owner) enterSession(ctx context.Context, s *session) {
	o.mu.Lock()
	o.session, o.notMemberReason = s, ""
	o.mu.Unlock()
	o.reviewAll(ctx)
}

// leaveSession ends the remaining tenures of a session, whose leases are no longer held.
func (o *Owner) leaveSession(ctx context.Context, s *session, life context.Context) {
	cause := context.Cause(life)
	if cause == nil {
		cause = errors.New("this replica has left")
	}
	o.mu.Lock()
	o.session, o.notMemberReason = nil, cause.Error()
	var lost []*tenure
	for _, c := range o.claims {
		if c.tenure != nil && c.tenure.session == s {
			lost = append(lost, c.tenure)
		}
		if c.pending != nil && c.pending.session == s.id {
			c.pending = nil // the lease expires
			o.dropLocked(c)
		}
	}
	o.mu.Unlock()
	for _, t := range lost {
		t.lose(cause)
	}
	o.reviewAll(ctx)
}

// finishReleases writes the pending releases, for at most ReleaseTimeout. If it fails, the session is not released, and
// expires together with its leases.
//
// Errors: [leader.ErrWorkRemains] when a lease was not released.
func (o *Owner) finishReleases(ctx, tenure context.Context) error {
	releaseCtx, cancel := context.WithTimeout(tenure, o.options.ReleaseTimeout())
	defer cancel()
	for {
		o.retryReleases(releaseCtx)
		pending, held := o.remaining()
		switch {
		case held > 0:
			return fmt.Errorf("%w: %d tenures were not released", leader.ErrWorkRemains, held)
		case pending == 0:
			return nil
		case releaseCtx.Err() != nil:
			return fmt.Errorf("%w: %d leases were not released", leader.ErrWorkRemains, pending)
		}
		klog.FromContext(ctx).V(2).Info("Waiting for leases to be released", "count", pending)
		select {
		case <-time.After(o.options.RetryPeriod / 4):
		case <-releaseCtx.Done():
		}
	}
}

func (o *Owner) remaining() (pending, held int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.claims {
		if c.tenure != nil {
			held++
		}
		if c.pending != nil {
			pending++
		}
	}
	return pending, held
}

// deleteOwnLease deletes this replica's lease, which is released. The replica's next process could take the lease over
// as it is; the deletion is for replicas that never come back.
func (o *Owner) deleteOwnLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.options.retryAfter())
	defer cancel()
	l, err := o.leases.Get(ctx, o.lease, metav1.GetOptions{})
	if err == nil && holderOf(l) == "" {
		err = o.deleteExactly(ctx, l.Name, membership{uid: l.UID, version: l.ResourceVersion})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).Error(err, "Cannot delete the released lease of this replica", "lease", o.lease)
	}
}

// deleteExactly deletes a lease if it is still in that state.
func (o *Owner) deleteExactly(ctx context.Context, name string, m membership) error {
	return o.leases.Delete(ctx, name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.uid, ResourceVersion: &m.version}})
}
