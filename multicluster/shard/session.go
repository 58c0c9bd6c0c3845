package shard

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/leader"
)

// session is a period in which this replica is a member. Every lease that the replica takes names the session, and is
// held as long as the session lasts. So one request in each retry period, which renews the session, keeps all leases.
type session struct {
	id    string
	began time.Time
	// check returns nil while no other replica can consider the session expired.
	check func() error
}

// newElector returns an elector that takes this replica's own lease in the name of a session. The replica is a member
// while the elector leads.
func (o *Owner) newElector(session string) (*leader.Elector, error) {
	lock, err := leader.NewLeaseLock(o.config, metav1.ObjectMeta{
		Namespace: o.options.Namespace, Name: o.lease,
		Labels: map[string]string{FleetLabel: o.options.Fleet, KindLabel: string(replicaLease)},
	}, session, nil)
	if err != nil {
		return nil, err
	}
	return leader.New(lock, o.options.Options)
}

// runSessions runs one session after the other until ctx is done.
func (o *Owner) runSessions(ctx context.Context) {
	for ctx.Err() == nil {
		id := newSession(o.options.Identity)
		elector, err := o.newElector(id)
		if err != nil {
			panic(err) // New has made one with the same options
		}
		o.mu.Lock()
		o.elector = elector
		o.mu.Unlock()
		// No logger, because the elector's messages would call this member a leader.
		err = elector.Run(klog.NewContext(ctx, klog.Logger{}), func(tenure context.Context) error {
			return o.runSession(ctx, tenure, &session{id: id, began: time.Now(), check: elector.Check})
		})
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

// runSession runs one session until ctx is done, or until tenure is done because other replicas may now consider the
// session expired.
func (o *Owner) runSession(ctx, tenure context.Context, s *session) error {
	klog.FromContext(ctx).Info("Replica is a member of the fleet", "session", s.id)
	o.mu.Lock()
	o.session = s
	o.mu.Unlock()
	o.reviewAll(ctx)
	defer o.leaveSession(ctx, s, tenure)
	select {
	case <-tenure.Done():
		return nil
	case <-ctx.Done():
		return o.finishReleases(tenure)
	}
}

// leaveSession ends the tenures that are left when a session ends, because their leases are no longer held.
func (o *Owner) leaveSession(ctx context.Context, s *session, life context.Context) {
	cause := context.Cause(life)
	if cause == nil {
		cause = errors.New("this replica has left")
	}
	o.mu.Lock()
	o.session = nil
	var lost []*tenure
	for _, c := range o.claims {
		if c.tenure != nil && c.tenure.session == s {
			lost = append(lost, c.tenure)
		}
		c.release = nil // The lease expires with the session.
		o.dropLocked(c)
	}
	o.mu.Unlock()
	for _, t := range lost {
		t.lose(cause)
	}
	o.reviewAll(ctx)
}

// finishReleases writes the remaining releases, for at most ReleaseTimeout. If it fails, the elector does not release
// the session, which then expires together with its leases.
//
// Errors: [leader.ErrWorkRemains] when a lease was not released.
func (o *Owner) finishReleases(tenure context.Context) error {
	ctx, cancel := context.WithTimeout(tenure, o.options.ReleaseTimeout())
	defer cancel()
	for {
		o.retryReleases(ctx)
		s := o.Stats()
		switch {
		case s.Serving > 0:
			return fmt.Errorf("%w: %d tenures were not released", leader.ErrWorkRemains, s.Serving)
		case s.Releasing == 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %d leases were not released", leader.ErrWorkRemains, s.Releasing)
		}
		sleep(ctx, nil, o.options.RetryPeriod/4)
	}
}

// deleteOwnLease deletes this replica's lease after it was released. A replica that comes back could use the old lease,
// so the deletion matters only for replicas that do not come back.
func (o *Owner) deleteOwnLease(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	l, err := o.read(ctx, o.lease)
	if err == nil && l != nil && holderOf(l) == "" {
		err = o.remove(ctx, l)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot delete the released lease of this replica", "lease", o.lease)
	}
}
