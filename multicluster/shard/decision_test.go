package shard

import (
	"testing"
	"time"
)

// TestDecide covers the states in which a replica can find a lease. first, second and third are the replicas in the
// order in which they are ranked for the key "k".
func TestDecide(t *testing.T) {
	now := time.Now()
	order := ranked([]string{"a", "b", "c"}, "k")
	first, second, third := order[0], order[1], order[2]
	base := func(self string) decisionInput {
		return decisionInput{
			now: now, self: self, session: self + "#1", began: now.Add(-time.Minute), settle: 2 * time.Second,
			key: "k", replicas: []string{"a", "b", "c"}, patience: 15 * time.Second, free: now,
			duration: 15 * time.Second,
		}
	}
	for _, c := range []struct {
		name   string
		self   string
		change func(o *decisionInput)
		action action
		why    string
		again  time.Duration
	}{
		{
			"no member", first, func(o *decisionInput) { o.session, o.notMemberReason = "", "no route" }, wait,
			"this replica is not a member: no route", 0,
		},
		{"leaving", first, func(o *decisionInput) { o.leaving = true }, wait, "this replica is leaving", 0},
		{
			"new", first, func(o *decisionInput) { o.began = now.Add(-time.Second) }, wait,
			"this replica has just become a member", time.Second,
		},
		{"free, first in line", first, func(*decisionInput) {}, take, "this replica is taking it", 0},
		{"free, second in line", second, func(*decisionInput) {}, wait, first + " should serve it", 15 * time.Second},
		{"free, third in line", third, func(o *decisionInput) { o.free = now.Add(-20 * time.Second) }, wait, first +
			" should serve it", 10 * time.Second},
		{
			"free for long", third, func(o *decisionInput) { o.free = now.Add(-30 * time.Second) }, take,
			"this replica is taking it", 0,
		},
		{
			"held by a dead one", first, func(o *decisionInput) { o.holder, o.state = "z#1", dead }, take,
			"this replica is taking it", 0,
		},
		{
			"held by a dead one, second in line", second,
			func(o *decisionInput) { o.holder, o.state = "z#1", dead }, wait,
			first + " should serve it", 15 * time.Second,
		},
		{
			"held by one that is overdue", first, func(o *decisionInput) { o.holder, o.state = "z#1", overdue }, wait,
			"held by z, whose renewal is overdue", 0,
		},
		{
			"held by the first in line", second, func(o *decisionInput) { o.holder = first + "#1" }, wait,
			"served by " + first, 0,
		},
		{
			"held by the second in line", first, func(o *decisionInput) { o.holder = second + "#1" }, request,
			"served by " + second + "; requesting a handover", 0,
		},
		{
			"asked already", first, func(o *decisionInput) { o.holder, o.wanted = second+"#1", first+"#1" }, wait,
			"served by " + second + "; a handover was requested", 0,
		},
		{
			"another one has asked", first,
			func(o *decisionInput) { o.holder, o.wanted = second+"#1", third+"#1" }, request,
			"served by " + second + "; requesting a handover", 0,
		},
		{
			"held by one that leaves", first, func(o *decisionInput) { o.holder = "z#1" }, wait,
			"served by z, which is leaving", 0,
		},
		{"not its share", third, func(o *decisionInput) { o.holder = second + "#1" }, wait, "served by " + second, 0},
		{
			"held by itself: an answer was lost", second, func(o *decisionInput) { o.holder = second + "#1" }, take,
			"this replica is taking it", 0,
		},
		{"held by its own last session", first, func(o *decisionInput) { o.holder = first + "#0" }, wait, "served by " +
			first, 0},
		{
			"deleted while it was held", first,
			func(o *decisionInput) { o.deletedAt = now.Add(-5 * time.Second) }, wait,
			"its lease was deleted; the last holder may still be serving it", 10 * time.Second,
		},
		{
			"deleted long ago", first, func(o *decisionInput) { o.deletedAt = now.Add(-15 * time.Second) }, take,
			"this replica is taking it", 0,
		},
	} {
		o := base(c.self)
		c.change(&o)
		if got := decide(&o); got.action != c.action || got.reason != c.why || got.recheckAfter != c.again {
			t.Errorf("%s: %+v, want %v %q %v", c.name, got, c.action, c.why, c.again)
		}
	}
}

// A replica that has yielded a lease does not request it back, because both replicas compare the same weights.
func TestLeaseIsNotRequestedBack(t *testing.T) {
	for _, k := range []string{"k", "l", "m", "eu/shop", "n", "o"} {
		replicas := []string{"a", "b", "c"}
		for _, holder := range replicas {
			for _, by := range replicas {
				if mustYield(holder, by+"#1", k, replicas) && mustYield(by, holder+"#1", k, replicas) {
					t.Errorf("%s: %s and %s both yield", k, holder, by)
				}
			}
			if mustYield(holder, "", k, replicas) || mustYield(holder, holder+"#2", k, replicas) ||
				mustYield(holder, "gone#1", k, replicas) {
				t.Errorf("%s yields to nobody", holder)
			}
		}
	}
}
