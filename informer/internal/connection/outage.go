package connection

import (
	"sync"
	"time"
)

// outage joins the failures of all informers of one server to one: when the server goes away, every connection
// breaks, and the log has one line for all of them. It has another when all follow again.
//
// A connection can also fail alone, because an aggregated API is down, for example. Then others go on. So a failure
// belongs to the outage only if no informer has opened a watch since the outage began; otherwise it begins the next
// one. A connection that breaks once and is open again at the next attempt is no outage: load balancers do that all
// day.
//
// Concurrency: all methods may be called from any goroutine.
type outage struct {
	mu sync.Mutex
	// failing has the connections that fail, and when the log last had a line about each.
	failing map[*Status]*failing
	// number counts outages. members is how many connections of the last one still fail; 0 when it is over.
	number, members int
	// began is when the last outage began, and logged what was logged of it.
	began  time.Time
	logged logDedup
	// answered reports whether a watch was opened since the last outage began.
	answered bool
}

// failing is a connection that fails.
type failing struct {
	// outage is the number of the outage that it belongs to.
	outage int
	// logged is, once the next outage has begun, when it did, or when the log had the last line about this
	// connection. alone reports whether it had one.
	logged time.Time
	alone  bool
}

// news is what the log is to be told.
type news int

const (
	noNews news = iota
	// serverNews is about the server.
	serverNews
	// resourceNews is about one resource.
	resourceNews
)

// unreachable reports whether a failure may be an outage of the whole server.
func (f Failure) unreachable() bool {
	return f == Silent || f == Broken || f == ServerError || f == Busy
}

// failed records that a connection failed with these words. It returns what is worth a line in the log.
func (o *outage) failed(l *Status, words string, now time.Time) news {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.failing[l]
	switch {
	case f == nil && o.members > 0 && !o.answered:
		o.failing[l] = &failing{outage: o.number}
		o.members++
		return noNews
	case f == nil:
		o.number, o.members, o.answered, o.began = o.number+1, 1, false, now
		if o.failing == nil {
			o.failing = map[*Status]*failing{}
		}
		o.failing[l] = &failing{outage: o.number}
		for _, f := range o.failing {
			f.logged = now // Those of before have lines of their own only if they fail on for long.
		}
		clear(o.logged.kinds)
		return noNews
	case f.outage != o.number: // The others are back, or have begun another outage.
		if now.Sub(f.logged) < repeatLog {
			return noNews
		}
		f.logged, f.alone = now, true
		return resourceNews
	}
	if o.logged.isNews(failureKind{}, words, now) {
		return serverNews
	}
	return noNews
}

// recovered notes that a connection that may have failed follows again, or is given up. It returns what is worth a
// line, and when the failure that is over began.
func (o *outage) recovered(l *Status, answered bool) (news, time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answered = o.answered || answered
	f := o.failing[l]
	delete(o.failing, l)
	switch {
	case f == nil:
		return noNews, time.Time{}
	case f.outage != o.number:
		if f.alone {
			return resourceNews, f.logged
		}
		return noNews, time.Time{}
	}
	if o.members--; o.members > 0 {
		return noNews, time.Time{}
	}
	clear(o.logged.kinds)
	if o.logged.begun.IsZero() {
		return noNews, time.Time{}
	}
	o.logged.begun = time.Time{}
	return serverNews, o.began
}
