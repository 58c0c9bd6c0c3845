package shard

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// action is what to do about a lease that this replica does not hold.
type action int

const (
	wait    action = iota
	take           // write this replica's session into the lease
	request        // request the lease from its holder
)

// decisionInput is everything that a decision about a lease depends on.
type decisionInput struct {
	now time.Time
	// self is this replica, and session its session. While the replica is not a member, session is "", and
	// notMemberReason is the reason.
	self, session, notMemberReason string
	// began is when the session began. The replica takes nothing until settle has passed since.
	began  time.Time
	settle time.Duration
	// leaving means that this replica hands over all its clusters.
	leaving bool

	// key is the name of the cluster, and replicas are the members, including self, that are ranked for it.
	key      string
	replicas []string
	// free is when this replica first saw the lease free; zero if the lease is held. The replicas in line may then take
	// it one after the other, each one patience later than the one before.
	patience time.Duration
	free     time.Time

	// holder is the session in the lease, or "" if there is none. state is that session's liveness. wanted is the
	// session that has requested the lease.
	holder, wanted string
	state          liveness
	// deletedAt is when the lease was deleted although it was held; otherwise zero. duration is how long its holder may
	// continue after that.
	deletedAt time.Time
	duration  time.Duration
}

// isFree reports whether no session holds the lease, as far as this replica knows. A lease that was deleted while it
// was held counts as free only after duration.
func (o *decisionInput) isFree() bool {
	return (o.holder == "" || o.state == dead) && !o.now.Before(o.deletedAt.Add(o.duration))
}

// decision is what to do about a lease, and the reason to report. The claim decides again when something changes, and
// after recheckAfter if that is not zero.
type decision struct {
	action       action
	reason       string
	recheckAfter time.Duration
}

// decide returns the next action for a lease. It is a pure function.
//
//	the lease is free         the first in line takes it at once, the second after one patience, the third after two, …
//	a live session holds it   the first in line requests it, unless the holder is leaving anyway; all wait
//	our own session holds it  this replica takes it again, because the answer to its first write was lost
func decide(o *decisionInput) decision {
	until := func(t time.Time, reason string) decision {
		return decision{reason: reason, recheckAfter: t.Sub(o.now)}
	}
	settled := o.began.Add(o.settle)
	switch {
	case o.session == "":
		return decision{reason: "this replica is not a member: " + o.notMemberReason}
	case o.leaving:
		return decision{reason: "this replica is leaving"}
	case o.now.Before(settled):
		return until(settled, "this replica has just become a member")
	}
	order := ranked(o.replicas, o.key)
	rank := slices.Index(order, o.self)
	turn := o.free.Add(time.Duration(rank) * o.patience)
	by := identityOf(o.holder)
	switch {
	case o.holder == o.session, o.isFree() && (rank == 0 || !o.now.Before(turn)):
		return decision{action: take, reason: "this replica is taking it"}
	case o.isFree():
		return until(turn, order[0]+" should serve it")
	case o.holder == "":
		return until(o.deletedAt.Add(o.duration), "its lease was deleted; the last holder may still be serving it")
	case o.state == overdue:
		return decision{reason: fmt.Sprintf("held by %s, whose renewal is overdue", by)}
	case by != o.self && !slices.Contains(o.replicas, by):
		return decision{reason: fmt.Sprintf("served by %s, which is leaving", by)}
	case rank > 0 || by == o.self:
		return decision{reason: "served by " + by}
	case o.wanted != o.session:
		return decision{action: request, reason: fmt.Sprintf("served by %s; requesting a handover", by)}
	}
	return decision{reason: fmt.Sprintf("served by %s; a handover was requested", by)}
}

// mustYield reports whether this replica, the holder of a lease, should release it because a replica with a greater
// weight has requested it. Both replicas compare the same weights, so this one does not request the lease back.
func mustYield(self, wanted, key string, replicas []string) bool {
	by := identityOf(wanted)
	return wanted != "" && by != self && slices.Contains(replicas, by) && ranked([]string{self, by}, key)[0] == by
}

// weight ranks a replica for a key: the key belongs to the replica with the greatest weight. The weight depends only on
// the two names. So a new replica takes about an equal share from each of the others, a replica that leaves gives its
// share back to them, and nothing else moves. The function must never change, because replicas of different versions
// have to agree on it.
//
// Source: Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996.
func weight(replica, key string) uint64 {
	sum := sha256.Sum256([]byte(replica + "\x00" + key))
	return binary.BigEndian.Uint64(sum[:])
}

// ranked returns the replicas ordered by their weight for a key, the greatest first.
func ranked(replicas []string, key string) []string {
	weights := make(map[string]uint64, len(replicas))
	for _, r := range replicas {
		weights[r] = weight(r, key)
	}
	return slices.SortedFunc(slices.Values(replicas), func(a, b string) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b))
	})
}
