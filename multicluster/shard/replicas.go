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
// expired: those whose lease it has seen unchanged for the lease's whole duration, on its own monotonic clock. It never
// compares the times in leases with a clock; a different time only means that something has changed.
//
// Concurrency: all methods may be called from any goroutine.
type replicas struct {
	duration time.Duration // of a lease that does not state one

	mu sync.Mutex
	// sessions has all sessions that leases have named. Invariant: a dead session stays as long as a lease names it.
	sessions map[string]*sessionRecord
}

// sessionRecord is what this replica has seen of a session.
type sessionRecord struct {
	// lease and uid are those of the replica's lease that names the session. lease is "" when none does: then the
	// session is known from the lease of a cluster, or from a lease of a replica that was deleted.
	lease string
	uid   types.UID
	// renewal is the time in the last renewal of the session that this replica saw, and at is when it saw it.
	renewal int64
	at      time.Time
	// duration is how long after at the session may still be held.
	duration time.Duration
	// leaving means that its replica hands over all its clusters.
	leaving bool
	// dead means that nobody can hold the session any more. That is final.
	dead bool
}

// isMember reports whether the session makes its replica one that shares the fleet.
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

// renewed records that the session was alive when this replica saw a lease that names it.
func (r *replicas) renewed(s *sessionRecord, l *coordinationv1.Lease) {
	s.at, s.duration = time.Now(), r.duration
	if seconds := ptr.Deref(l.Spec.LeaseDurationSeconds, 0); seconds > 0 {
		s.duration = time.Duration(seconds) * time.Second
	}
}

// observe records the lease of a replica, as the informer shows it. It reports whether the set of replicas has changed.
func (r *replicas) observe(l *coordinationv1.Lease) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	holder := holderOf(l)
	for session, s := range r.sessions {
		if s.lease == l.Name && session != holder {
			// Another session takes over a replica's lease only after it has found it expired, and a replica clears its
			// lease only at the end of its session.
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

// observeDeletion records that the lease of a replica was deleted. If the replica is alive, it will create the lease
// anew.
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

// observeHolder records that the lease of a cluster names a session. If the session is unknown, it may have been alive
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
	alive  liveness = iota // it may be alive
	silent                 // it may be alive, but a renewal is overdue
	dead                   // it has ended, or its lease has expired
)

// state returns the liveness of a session. A session is silent if its last renewal is older than quiet, or if no lease
// of a replica names it. One that no lease has named at all may be alive.
func (r *replicas) state(session string, quiet time.Duration) liveness {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[session]
	switch {
	case s == nil:
		return alive
	case s.dead:
		return dead
	case s.lease == "" || time.Since(s.at) > quiet:
		return silent
	}
	return alive
}

// eligible returns the sorted names of the replicas that share the clusters. It includes self, unless that is empty, in
// whatever state self is.
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

// expired returns the sessions that have expired unless the informer is behind, and the time until the next session
// expires. No session that is seen from now on expires earlier, provided that all leases have the same duration.
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

// confirmExpired records the lease of a session's replica, as read from the server (nil if there is none). It reports
// whether the session is dead.
//
// The informer cannot tell whether a lease is unchanged, because it may be behind.
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

// forget deletes the dead sessions that no lease names.
func (r *replicas) forget(named map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.sessions,
		func(session string, s *sessionRecord) bool { return s.dead && s.lease == "" && !named[session] })
}

// count returns how many replicas share the fleet, as far as this one knows.
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
