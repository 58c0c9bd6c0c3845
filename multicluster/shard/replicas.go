package shard

import (
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// replicas is what this replica has seen of all, itself included. What it decides is which sessions cannot be held
// any more: those whose lease it has seen unchanged for the lease's whole duration, on its own monotonic clock. The
// times in leases are never compared with a clock; that they differ says that something changed.
//
// Concurrency: all methods may be called from any goroutine.
type replicas struct {
	duration time.Duration // of a lease that does not say

	mu sync.Mutex
	// sessions are all that leases have named. Invariant: dead ones stay as long as a lease names them.
	sessions map[string]*sighting
	// memberships are the leases of replicas, by name.
	memberships map[string]membership
}

// membership is the lease of a replica.
type membership struct {
	uid     types.UID
	version string
	holder  string
	// seen is when it was seen to change last.
	seen time.Time
}

// sighting is what was seen of a session.
type sighting struct {
	// renewal is what its lease said when it was seen to change last, and at is when that was.
	renewal renewal
	at      time.Time
	// duration is how long after that it may still be held.
	duration time.Duration
	// member: there is a lease of a replica that names it. Otherwise only the lease of a cluster does.
	member bool
	// leaving: it hands over all it has.
	leaving bool
	// dead: it cannot be held any more. That is final.
	dead bool
}

// renewal is what changes in the lease of a replica when it is renewed.
type renewal struct {
	time        int64
	transitions int32
}

func newReplicas(duration time.Duration) *replicas {
	return &replicas{duration: duration, sessions: map[string]*sighting{}, memberships: map[string]membership{}}
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

// observe takes in the lease of a replica, as the informer shows it. changed says that there are other replicas now.
func (r *replicas) observe(l *coordinationv1.Lease) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.memberships[l.Name]
	holder := holderOf(l)
	r.memberships[l.Name] = membership{l.UID, l.ResourceVersion, holder, time.Now()}
	if old := r.sessions[before.holder]; old != nil && before.holder != holder {
		// Nobody takes the lease of a replica over who has not found it run out, and none is emptied whose session is
		// not over.
		changed = changed || old.member
		old.member = false
		old.dead = old.dead || before.uid == l.UID
	}
	if holder == "" {
		return changed
	}
	s := r.sessions[holder]
	if s == nil {
		s = &sighting{}
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

// lose takes in that the lease of a replica was deleted. Its replica will write it anew if it is there.
func (r *replicas) lose(name string) (changed bool) {
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

// mention takes in that the lease of a cluster names a session. One that was not heard of before may have been held
// until now.
func (r *replicas) mention(l *coordinationv1.Lease) (news bool) {
	session := holderOf(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	if session == "" || r.sessions[session] != nil {
		return false
	}
	r.sessions[session] = &sighting{at: time.Now(), duration: r.durationOf(l)}
	return true
}

// holder is how a session is.
type holder int

const (
	alive  holder = iota // it may be held
	silent               // it may be held, but was not heard of for longer than it should have been
	dead                 // it cannot be held any more
)

// state tells how a session is, and until when at most that can stay as it is without news.
func (r *replicas) state(session string, quiet time.Duration) holder {
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

// eligible are the replicas that clusters are shared among, in order, and self whatever is known of it.
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

// due are the sessions that have been unchanged for so long that they cannot be held any more, if their leases say so
// still; and how long it is until the next one comes to that.
func (r *replicas) due() (sessions []string, next time.Duration) {
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

// confirm takes in what the lease of a session's replica says, read from the server; nil: there is none. It says
// whether the session cannot be held any more.
//
// The informer cannot tell that a lease is unchanged: it may be behind.
func (r *replicas) confirm(session string, l *coordinationv1.Lease) bool {
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

// forget lets go of the dead sessions that no lease names.
func (r *replicas) forget(named map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.sessions,
		func(session string, s *sighting) bool { return s.dead && !s.member && !named[session] })
}

// relics are the leases of replicas that ended longer than age ago.
func (r *replicas) relics(age time.Duration) map[string]membership {
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

// Replica is one of those that share a fleet.
type Replica struct {
	// Identity names it.
	Identity string
	// Heard is when its membership was seen to change last.
	Heard time.Time
	// Leaving: it hands over all it has.
	Leaving bool
}

// list is in order of identity.
func (r *replicas) list() []Replica {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Replica
	for _, session := range slices.Sorted(maps.Keys(r.sessions)) {
		if s := r.sessions[session]; s.member && !s.dead {
			all = append(all, Replica{identityOf(session), s.at, s.leaving})
		}
	}
	return all
}
