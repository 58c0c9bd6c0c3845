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

// session is a time in which this replica is a member. Every lease that it takes names it, and is held exactly as
// long as the session is: that is renewed by one request every retry period, however many clusters there are.
type session struct {
	id    string
	began time.Time
	// check is nil while nobody can hold the session to be over.
	check func() error
}

// validTimes says what is wrong with the times of a membership.
func validTimes(o leader.Options) error {
	_, err := leader.New(&resourcelock.LeaseLock{LockConfig: resourcelock.ResourceLockConfig{Identity: "any"}}, o)
	return err
}

// belong makes this replica a member, and anew when it ceases to be one, until ctx is done.
func (o *Owner) belong(ctx context.Context) {
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
			panic(err) // New has tried it
		}
		told := make(chan struct{}) // closed when the watch of the campaign has ended; nobody sends
		campaign, end := context.WithCancel(ctx)
		go func() {
			defer close(told)
			o.explain(campaign, elector)
		}()
		// The elector's words are about leaders: this is none.
		err = elector.Run(klog.NewContext(ctx, klog.Logger{}), func(tenure context.Context) error {
			end()
			return o.attend(ctx, tenure, &session{id: id, began: time.Now(), check: elector.Check})
		})
		end()
		<-told
		switch {
		case errors.Is(err, leader.ErrWorkRemains):
			klog.FromContext(
				ctx,
			).Error(err, "Replica leaves the fleet with leases that it could not give back: they run out",
				"session", id)
		case err != nil:
			klog.FromContext(ctx).Error(err, "Replica is no member of the fleet any more", "session", id)
		case ctx.Err() != nil:
			o.clear(ctx)
		}
	}
}

// explain tells why this replica is not a member while it tries to become one.
func (o *Owner) explain(ctx context.Context, elector *leader.Elector) {
	ticker := time.NewTicker(o.options.RetryPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		status, why := elector.Status(), "it is becoming one"
		switch {
		case status.Err != nil:
			why = status.Err.Error()
		case status.Holder != "":
			why = fmt.Sprintf("session %s was one a moment ago, and has to run out", status.Holder)
		}
		o.mu.Lock()
		changed := o.session == nil && o.whyNot != why
		if changed {
			o.whyNot = why
		}
		o.mu.Unlock()
		if changed {
			klog.FromContext(ctx).Info("Replica is no member of the fleet", "reason", why)
			o.reviewAll(ctx)
		}
	}
}

// attend is one session: until ctx is done, or tenure ends because the session can be held to be over.
func (o *Owner) attend(ctx, tenure context.Context, s *session) error {
	klog.FromContext(ctx).Info("Replica is a member of the fleet", "session", s.id)
	o.enterSession(ctx, s)
	defer o.leaveSession(ctx, s, tenure)
	again := time.NewTicker(o.options.RetryPeriod)
	defer again.Stop()
	left := o.left
	for {
		select {
		case <-tenure.Done():
			return nil
		case <-ctx.Done():
			return o.settleDebts(ctx, tenure)
		case <-left:
			if err := o.annotate(tenure, o.lease, LeavingAnnotation, s.id); err != nil {
				klog.FromContext(ctx).Error(err, "Replica cannot tell the others that it leaves")
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
	o.session, o.whyNot = s, ""
	o.mu.Unlock()
	o.reviewAll(ctx)
}

// leaveSession ends all tenures that are left, whose leases are not held any more.
func (o *Owner) leaveSession(ctx context.Context, s *session, life context.Context) {
	cause := context.Cause(life)
	if cause == nil {
		cause = errors.New("this replica has left")
	}
	o.mu.Lock()
	o.session, o.whyNot = nil, cause.Error()
	var lost []*tenure
	for _, c := range o.claims {
		if c.tenure != nil && c.tenure.session == s {
			lost = append(lost, c.tenure)
		}
		if c.owed != nil && c.owed.session == s.id {
			c.owed = nil // it runs out
			o.dropLocked(c)
		}
	}
	o.mu.Unlock()
	for _, t := range lost {
		t.lose(cause)
	}
	o.reviewAll(ctx)
}

// settleDebts pays what is owed, for a while. A session that is not released runs out, and what it holds with it.
//
// Errors: [leader.ErrWorkRemains] when something is left.
func (o *Owner) settleDebts(ctx, tenure context.Context) error {
	patience, cancel := context.WithTimeout(tenure, o.options.ReleaseTimeout())
	defer cancel()
	for {
		o.sweep(patience)
		unpaid, held := o.remaining()
		switch {
		case held > 0:
			return fmt.Errorf("%w: %d tenures were not released", leader.ErrWorkRemains, held)
		case unpaid == 0:
			return nil
		case patience.Err() != nil:
			return fmt.Errorf("%w: %d leases were not released", leader.ErrWorkRemains, unpaid)
		}
		klog.FromContext(ctx).V(2).Info("Waiting for leases to be released", "count", unpaid)
		select {
		case <-time.After(o.options.RetryPeriod / 4):
		case <-patience.Done():
		}
	}
}

func (o *Owner) remaining() (unpaid, held int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.claims {
		if c.tenure != nil {
			held++
		}
		if c.owed != nil {
			unpaid++
		}
	}
	return unpaid, held
}

// clear deletes this replica's lease, which is released. Its next process would take it over as it is: this is for
// those that never come again.
func (o *Owner) clear(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.options.retryAfter())
	defer cancel()
	l, err := o.leases.Get(ctx, o.lease, metav1.GetOptions{})
	if err == nil && holderOf(l) == "" {
		err = o.deleteExactly(ctx, l.Name, membership{uid: l.UID, version: l.ResourceVersion})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).Error(err, "The lease of this replica is free, but stays", "lease", o.lease)
	}
}

// deleteExactly deletes a lease in that very state.
func (o *Owner) deleteExactly(ctx context.Context, name string, m membership) error {
	return o.leases.Delete(ctx, name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.uid, ResourceVersion: &m.version}})
}
