package connection

import (
	"sync"
	"time"
)

// outage merges the failures of all informers of one server. When the server goes away, every connection breaks; the
// log then has one line for all of them, and another when all are connected again.
//
// A connection can also fail alone, for example because an aggregated API is down, while others go on. So a failure
// belongs to the current outage only if no informer has opened a watch since that outage began; otherwise it begins the
// next outage. A connection that breaks once and is open again at the next attempt is not an outage: behind load
// balancers that happens all day.
//
// Concurrency: all methods may be called from any goroutine.
type outage struct {
	mu sync.Mutex
	// failing has the connections that are failing.
	failing map[*Status]*failing
	// number counts outages. members is how many connections of the latest one still fail; 0 when it is over.
	number, members int
	// began is when the latest outage began. logged is what was logged about it.
	began  time.Time
	logged logDedup
	// answered is true if a watch was opened since the latest outage began.
	answered bool
}

// failing is a connection that is failing.
type failing struct {
	// outage is the number of the outage that it belongs to.
	outage int
	// logged is used once an outage later than this one has begun. It is when that outage began or, if that was later,
	// when the log last got a line about this connection alone. alone is true if there was such a line.
	logged time.Time
	alone  bool
}

// logLine is the line that the log should get.
type logLine int

const (
	logNothing logLine = iota
	// logServer is a line about the server.
	logServer
	// logResource is a line about one resource.
	logResource
)

// unreachable reports whether a failure may be an outage of the whole server.
func (f Failure) unreachable() bool {
	return f == Silent || f == Broken || f == ServerError || f == Busy
}

// failed records a failure of a connection, and returns the line that the log should get.
func (o *outage) failed(s *Status, text string, now time.Time) logLine {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.failing[s]
	switch {
	case f == nil && o.members > 0 && !o.answered:
		o.failing[s] = &failing{outage: o.number}
		o.members++
		return logNothing
	case f == nil:
		o.number, o.members, o.answered, o.began = o.number+1, 1, false, now
		if o.failing == nil {
			o.failing = map[*Status]*failing{}
		}
		o.failing[s] = &failing{outage: o.number}
		for _, f := range o.failing {
			f.logged = now // Connections of earlier outages get lines of their own only if they go on failing for long.
		}
		clear(o.logged.kinds)
		return logNothing
	case f.outage != o.number: // The others are connected again, or have begun another outage.
		if now.Sub(f.logged) < repeatLog {
			return logNothing
		}
		f.logged, f.alone = now, true
		return logResource
	}
	if o.logged.shouldLog(failureKind{}, text, now) {
		return logServer
	}
	return logNothing
}

// recovered records that a connection, which may have been failing, is open again or was given up. It returns the line
// that the log should get, and when the failure began. answered is true if the server has answered.
func (o *outage) recovered(s *Status, answered bool) (logLine, time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answered = o.answered || answered
	f := o.failing[s]
	delete(o.failing, s)
	switch {
	case f == nil:
		return logNothing, time.Time{}
	case f.outage != o.number:
		if f.alone {
			return logResource, f.logged
		}
		return logNothing, time.Time{}
	}
	if o.members--; o.members > 0 {
		return logNothing, time.Time{}
	}
	clear(o.logged.kinds)
	if o.logged.begun.IsZero() {
		return logNothing, time.Time{}
	}
	o.logged.begun = time.Time{}
	return logServer, o.began
}
