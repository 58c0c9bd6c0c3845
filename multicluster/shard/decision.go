package shard

import (
	"fmt"
	"slices"
	"time"
)

// action is what is to be done about a lease that this replica does not hold.
type action int

const (
	wait action = iota
	take        // write this replica's session into it
	ask         // have its holder hand it over
)

// outlook is all that is known about a lease when a decision about it is made.
type outlook struct {
	now time.Time
	// self is this replica, session its own; "" while it is no member, and why says why.
	self, session, why string
	// began is when the session did, and settle for how long it only looks on.
	began  time.Time
	settle time.Duration
	// leaving: this replica hands over all it has.
	leaving bool

	// key is what the weights are about.
	key string
	// replicas are those that share the fleet, self included.
	replicas []string
	// patience is how long each in line is given to take what is free, and free since when it is; zero: it is not.
	patience time.Duration
	free     time.Time

	// holder is the session in the lease; "" when it has none, or there is no lease. state is how that session is.
	holder string
	state  holder
	// wanted is the session that asked for it.
	wanted string
	// missed is when a lease vanished that somebody held, and duration how long that one may go on; zero: it did not.
	missed   time.Time
	duration time.Duration
}

// isFree says whether nobody holds the lease, as far as is known.
func (o *outlook) isFree() bool {
	return (o.holder == "" || o.state == dead) && !o.now.Before(o.missed.Add(o.duration))
}

// decision is what to do, what to tell, and when to think again at the latest; zero: when there is news.
type decision struct {
	action action
	why    string
	again  time.Duration
}

// decide is a pure function.
//
//	nobody holds it           the first in line takes it at once, the second after one patience, the third after two, …
//	a live session holds it   the first in line asks for it, unless its replica is leaving; everybody waits
//	our own session holds it  take it again: an answer was lost
func decide(o *outlook) decision {
	settled := o.began.Add(o.settle)
	switch {
	case o.session == "":
		return decision{why: "this replica is not a member: " + o.why}
	case o.leaving:
		return decision{why: "this replica is leaving"}
	case o.now.Before(settled):
		return decision{why: "this replica has just become a member", again: settled.Sub(o.now)}
	}
	order := ranked(o.replicas, o.key)
	rank := slices.Index(order, o.self)
	switch {
	case o.holder == o.session:
		return decision{action: take, why: "being taken"}
	case o.isFree():
		return decideFree(o, order[0], rank)
	case o.holder == "":
		return decision{
			why:   "its lease was deleted: whoever held it may go on for a while",
			again: o.missed.Add(o.duration).Sub(o.now),
		}
	}
	by := identityOf(o.holder)
	switch {
	case o.state == silent:
		return decision{why: fmt.Sprintf("held by %s, which is not heard of", by)}
	case by != o.self && !slices.Contains(o.replicas, by):
		return decision{why: fmt.Sprintf("served by %s, which is leaving", by)}
	case rank > 0 || by == o.self:
		return decision{why: "served by " + by}
	case o.wanted != o.session:
		return decision{action: ask, why: fmt.Sprintf("served by %s, which is being asked for it", by)}
	}
	return decision{why: fmt.Sprintf("served by %s, which was asked for it", by)}
}

func decideFree(o *outlook, first string, rank int) decision {
	turn := o.free.Add(time.Duration(rank) * o.patience)
	if rank > 0 && o.now.Before(turn) {
		return decision{why: first + " is to serve it", again: turn.Sub(o.now)}
	}
	return decision{action: take, why: "being taken"}
}

// mustYield says whether the holder of a lease should let go of it: another one that is meant more has asked for it.
// Both replicas judge by the same weights, so none is given what it would be asked for at once.
func mustYield(self, wanted, key string, replicas []string) bool {
	by := identityOf(wanted)
	if wanted == "" || by == self || !slices.Contains(replicas, by) {
		return false
	}
	return ranked([]string{self, by}, key)[0] == by
}
