package shard

import (
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// replicas records what this replica has seen of all replicas, itself included, and decides which sessions have
// expired. A session has expired if its lease has not changed for the duration of the lease, on this replica's own
// monotonic clock. The times in leases come from the clocks of other machines, so replicas only compares the times in
// one lease with each other: a different time means that the session was renewed.
//
// Concurrency: all methods may be called from any goroutine.
type replicas struct {
	duration time.Duration // the default for leases that do not state theirs

	mu sync.Mutex
	// sessions has all sessions that leases have named. Invariant: a dead session is kept as long as a lease names it.
	sessions map[string]*sessionRecord
}

// sessionRecord is what this replica has seen of a session.
type sessionRecord struct {
	// lease and uid are the name and UID of the replica's lease that names the session. If lease is "", no such lease
	// exists: the session is known only from the lease of a cluster, or the replica's lease was deleted.
	lease string
	uid   types.UID
	// renewal is the renewal time in the lease as this replica saw it last, and at is when it first saw that time.
	renewal int64
	at      time.Time
	// duration is how long after at the session may still be alive.
	duration time.Duration
	// leaving means that the session's replica hands over all its clusters.
	leaving bool
	// dead means that the session has ended or expired. It is never unset.
	dead bool
}

// isMember reports whether the session's replica is a member of the fleet.
func (s *sessionRecord) isMember() bool { return s.lease != "" && !s.dead }

func newReplicas(duration time.Duration) *replicas {
	return &replicas{duration: duration, sessions: map[string]*sessionRecord{}}
}

func renewalOf(l *coordinationv1.Lease) int64 {
	if l.Spec.RenewTime == nil {
		return 0
	}
	return l.Spec.RenewTime.UnixMicro()
}

// renewed records that s was alive until now. Its deadline moves to now plus the duration of l.
func (r *replicas) renewed(s *sessionRecord, l *coordinationv1.Lease) {
	s.at, s.duration = time.Now(), r.duration
	if seconds := ptr.Deref(l.Spec.LeaseDurationSeconds, 0); seconds > 0 {
		s.duration = time.Duration(seconds) * time.Second
	}
}

// observe records the state of a replica's lease in the informer. It reports whether the set of replicas has changed.
func (r *replicas) observe(l *coordinationv1.Lease) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	holder := holderOf(l)
	for session, s := range r.sessions {
		if s.lease == l.Name && session != holder {
			// The session s has ended, unless a person has deleted its lease. Another session takes a replica's lease
			// only when the old session has expired, and a replica clears its own lease only at the end of its session.
			s.lease, s.dead, changed = "", s.dead || s.uid == l.UID, true
		}
	}
	if holder == "" {
		return changed
	}
	s := r.sessions[holder]
	if s == nil {
		s = &sessionRecord{}
		r.sessions[holder] = s
	}
	leaving := l.Annotations[LeavingAnnotation] == holder
	changed = changed || s.lease == "" || s.leaving != leaving
	s.lease, s.uid, s.leaving = l.Name, l.UID, leaving
	if now := renewalOf(l); s.at.IsZero() || now != s.renewal {
		s.renewal = now
		r.renewed(s, l)
	}
	return changed
}

// observeDeletion records that the lease of a replica was deleted. A replica that is alive will create its lease again.
func (r *replicas) observeDeletion(lease string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		if s.lease == lease {
			s.lease, s.at, changed = "", time.Now(), true
		}
	}
	return changed
}

// observeHolder records the session that the lease of a cluster names. A session that is not known yet counts as alive
// until now.
func (r *replicas) observeHolder(l *coordinationv1.Lease) {
	session := holderOf(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	if session != "" && r.sessions[session] == nil {
		r.sessions[session] = &sessionRecord{}
		r.renewed(r.sessions[session], l)
	}
}

// liveness is what is known about whether a session is alive.
type liveness int

const (
	alive   liveness = iota // it may be alive
	overdue                 // it may be alive, but a renewal is overdue
	dead                    // it has ended, or its lease has expired
)

// state returns the liveness of a session. A session is overdue if its last renewal is older than overdueAfter, or if
// no replica's lease names it. A session that no lease has named yet counts as alive.
func (r *replicas) state(session string, overdueAfter time.Duration) liveness {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[session]
	switch {
	case s == nil:
		return alive
	case s.dead:
		return dead
	case s.lease == "" || time.Since(s.at) > overdueAfter:
		return overdue
	}
	return alive
}

// eligible returns the sorted names of the members that are not leaving. It always includes self, unless self is "".
func (r *replicas) eligible(self string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]bool{}
	if self != "" {
		names[self] = true
	}
	for session, s := range r.sessions {
		if s.isMember() && !s.leaving {
			names[identityOf(session)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// expired returns the sessions that have expired, unless the informer is behind, and the time until another one may
// expire. If all leases have the same duration, no session that is first seen after this call expires before that time.
func (r *replicas) expired() (sessions []string, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next = r.duration
	for session, s := range r.sessions {
		if s.dead {
			continue
		}
		if left := time.Until(s.at.Add(s.duration)); left <= 0 {
			sessions = append(sessions, session)
		} else {
			next = min(next, left)
		}
	}
	slices.Sort(sessions)
	return sessions, next
}

// confirmExpired decides whether a session that [replicas.expired] returned is dead. l is the lease of the session's
// replica, read from the server, or nil if there is none. The lease in the informer is not enough, because the informer
// may be behind.
func (r *replicas) confirmExpired(session string, l *coordinationv1.Lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[session]
	if s == nil || s.dead || time.Since(s.at) < s.duration {
		return s != nil && s.dead
	}
	if holderOf(l) == session && (s.lease == "" || renewalOf(l) != s.renewal) {
		s.renewal = renewalOf(l)
		r.renewed(s, l)
		return false
	}
	s.dead = true
	return true
}

// forget deletes the dead sessions that no lease names. named has the sessions that hold leases.
func (r *replicas) forget(named map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.sessions,
		func(session string, s *sessionRecord) bool { return s.dead && s.lease == "" && !named[session] })
}

// count returns the number of members, as far as this replica knows.
func (r *replicas) count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		if s.isMember() {
			n++
		}
	}
	return n
}
