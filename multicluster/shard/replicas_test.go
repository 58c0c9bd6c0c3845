package shard

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// lease returns the lease of a replica whose wall clock is three hours behind.
func lease(uid, holder string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "r-" + identityOf(holder), UID: types.UID(uid)},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15),
			RenewTime: &metav1.MicroTime{Time: renewed.Add(-3 * time.Hour)},
		},
	}
}

// A session expires a lease duration after its last observed change, whatever the times in its lease are, and only if
// the server confirms that it has not changed.
func TestSessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(15 * time.Second)
		begin := time.Now()
		if !r.observe(lease("1", "a#1", begin)) {
			t.Error("a new replica is no news")
		}
		time.Sleep(10 * time.Second)
		renewed := lease("1", "a#1", begin.Add(10*time.Second))
		if r.observe(renewed) {
			t.Error("a renewal is news")
		}
		time.Sleep(14 * time.Second)
		if due, next := r.expired(); len(due) != 0 || next != time.Second {
			t.Errorf("due %v, next in %v", due, next)
		}
		if r.confirmExpired("a#1", renewed) {
			t.Error("dead too early")
		}
		if s := r.state("a#1", 5*time.Second); s != overdue {
			t.Errorf("state %v, want overdue", s)
		}
		time.Sleep(time.Second)
		if due, _ := r.expired(); !slices.Equal(due, []string{"a#1"}) {
			t.Errorf("due %v", due)
		}
		unseen := lease("1", "a#1", begin.Add(20*time.Second)) // the informer is behind
		if r.confirmExpired("a#1", unseen) {
			t.Error("dead although it was renewed")
		}
		time.Sleep(15 * time.Second)
		if !r.confirmExpired("a#1", unseen) || r.state("a#1", 0) != dead || len(r.eligible("")) != 0 {
			t.Error("not dead 15s after")
		}
		if r.observe(lease("1", "a#1", begin.Add(time.Hour))); r.state("a#1", 0) != dead {
			t.Error("a late renewal brought it back")
		}
	})
}

func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		r := newReplicas(15 * time.Second)
		r.observe(lease("1", "a#1", now))
		r.observe(lease("1", "a#2", now))
		if r.state("a#1", 0) != dead || r.state("a#2", time.Second) != alive {
			t.Error("a session that was followed by another one is not over")
		}
		released := lease("1", "a#2", now)
		released.Spec.HolderIdentity = ptr.To("")
		if !r.observe(released) || r.state("a#2", 0) != dead {
			t.Error("a session that was released is not over")
		}
		r.observe(lease("2", "b#1", now))
		other := lease("3", "b#2", now)
		if r.observe(other); r.state("b#1", 0) == dead {
			t.Error(
				"a lease that was made anew ends the session of the one that was deleted, whose replica may not know",
			)
		}
		time.Sleep(15 * time.Second)
		if !r.confirmExpired("b#1", other) {
			t.Error("and it does not end later")
		}
		r.observeDeletion("r-b")
		if r.state("b#2", time.Second) != overdue || !slices.Equal(r.eligible("self"), []string{"self"}) {
			t.Error("a deleted lease: its session is neither over nor a replica")
		}
		if due, next := r.expired(); len(due) != 0 || next != 15*time.Second {
			t.Errorf("due %v, next %v", due, next)
		}
	})
}

// A session that only the lease of a cluster names expires a lease duration after it was first seen.
func TestSessionWithoutMembershipExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(15 * time.Second)
		held := lease("1", "z#1!", time.Now())
		held.Spec.LeaseDurationSeconds = ptr.To[int32](30)
		if r.observeHolder(held); r.state("z#1!", time.Hour) != overdue {
			t.Error("a session that no replica's lease names is not overdue")
		}
		time.Sleep(29 * time.Second)
		if r.confirmExpired("z#1!", nil) {
			t.Error("over too early")
		}
		time.Sleep(time.Second)
		if !r.confirmExpired("z#1!", lease("2", "z#1", time.Now())) {
			t.Error("its replica's session is not its own")
		}
		r.forget(map[string]bool{"z#1!": true})
		if r.state("z#1!", 0) != dead {
			t.Error("forgotten while a lease names it")
		}
		if r.forget(nil); len(r.sessions) != 0 {
			t.Error("not forgotten")
		}
	})
}
