package shard

import (
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// memberships has the leases of replicas, by lease name.
	memberships map[string]membership
}

// membership is the lease of a replica, as last seen.
type membership struct {
	uid     types.UID
	version string
	holder  string
	// seen is when this replica saw the lease change last.
	seen time.Time
}

// sessionRecord is what this replica has seen of a session.
type sessionRecord struct {
	// renewal is the last renewal of the session that this replica saw, and at is when it saw it.
	renewal renewal
	at      time.Time
	// duration is how long after at the session may still be held.
	duration time.Duration
	// member means that the lease of a replica names the session. Otherwise only the lease of a cluster does.
	member bool
	// leaving means that its replica hands over all its clusters.
	leaving bool
	// dead means that nobody can hold the session any more. That is final.
	dead bool
}

// renewal holds the fields of a replica's lease that a renewal changes.
type renewal struct {
	time        int64
	transitions int32
}

func newReplicas(duration time.Duration) *replicas {
	return &replicas{duration: duration, sessions: map[string]*sessionRecord{}, memberships: map[string]membership{}}
}

func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func renewalOf(l *coordinationv1.Lease) (r renewal) {
	if l.Spec.RenewTime != nil {
		r.time = l.Spec.RenewTime.UnixMicro()
	}
	if l.Spec.LeaseTransitions != nil {
		r.transitions = *l.Spec.LeaseTransitions
	}
	return r
}

func (r *replicas) durationOf(l *coordinationv1.Lease) time.Duration {
	if l.Spec.LeaseDurationSeconds == nil || *l.Spec.LeaseDurationSeconds <= 0 {
		return r.duration
	}
	return time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
}

// observe records the lease of a replica, as the informer shows it. It reports whether the set of replicas has changed.
func (r *replicas) observe(l *coordinationv1.Lease) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.memberships[l.Name]
	holder := holderOf(l)
	r.memberships[l.Name] = membership{l.UID, l.ResourceVersion, holder, time.Now()}
	if old := r.sessions[before.holder]; old != nil && before.holder != holder {
		// Another session takes over a replica's lease only after it has found it expired, and a replica clears its
		// lease only at the end of its session.
		changed = changed || old.member
		old.member = false
		old.dead = old.dead || before.uid == l.UID
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
	changed = changed || !s.member || s.leaving != leaving
	s.member, s.leaving = true, leaving
	if now := renewalOf(l); s.at.IsZero() || now != s.renewal {
		s.renewal, s.at, s.duration = now, time.Now(), r.durationOf(l)
	}
	return changed
}

// observeDeletion records that the lease of a replica was deleted. If the replica is alive, it will create the lease
// anew.
func (r *replicas) observeDeletion(name string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[r.memberships[name].holder]
	delete(r.memberships, name)
	if s == nil || !s.member {
		return false
	}
	s.member, s.at = false, time.Now()
	return true
}

// observeHolder records that the lease of a cluster names a session. If the session is unknown, it may have been alive
// until now. observeHolder reports whether it was unknown.
func (r *replicas) observeHolder(l *coordinationv1.Lease) (news bool) {
	session := holderOf(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	if session == "" || r.sessions[session] != nil {
		return false
	}
	r.sessions[session] = &sessionRecord{at: time.Now(), duration: r.durationOf(l)}
	return true
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
	case !s.member || time.Since(s.at) > quiet:
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
		if s.member && !s.dead && !s.leaving {
			names[identityOf(session)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// expired returns the sessions that have expired unless the informer is behind, and the time until the next session
// expires.
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
	if l != nil && holderOf(l) == session {
		if now := renewalOf(l); !s.member || now != s.renewal {
			s.renewal, s.at, s.duration = now, time.Now(), r.durationOf(l)
			return false
		}
	}
	s.dead = true
	return true
}

// forget deletes the dead sessions that no lease names.
func (r *replicas) forget(named map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.sessions,
		func(session string, s *sessionRecord) bool { return s.dead && !s.member && !named[session] })
}

// expiredLeases returns the leases of replicas that ended longer than age ago.
func (r *replicas) expiredLeases(age time.Duration) map[string]membership {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := map[string]membership{}
	for name, m := range r.memberships {
		s := r.sessions[m.holder]
		if over := m.holder == "" || s != nil && s.dead; over && time.Since(m.seen) > age {
			old[name] = m
		}
	}
	return old
}

// count returns how many replicas share the fleet, as far as this one knows.
func (r *replicas) count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sessions {
		if s.member && !s.dead {
			n++
		}
	}
	return n
}
