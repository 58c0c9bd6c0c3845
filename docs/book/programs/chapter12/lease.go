package chapter12

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A lease is the object on the server by which processes agree who leads.
type lease struct {
	holder  string
	renewed time.Time // by the clock of the holder
	version int       // grows with each write
}

// A server keeps the lease.
type server struct {
	mu    sync.Mutex
	lease lease
	cut   map[string]bool // the processes whose requests get no answer
}

var (
	errNoAnswer = errors.New("no answer")
	errConflict = errors.New("somebody else has written the lease")
)

func (s *server) get(process string) (lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut[process] {
		return lease{}, errNoAnswer
	}
	return s.lease, nil
}

// put writes the lease if it still has the version of l.
func (s *server) put(process string, l lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cut[process]:
		return errNoAnswer
	case l.version != s.lease.version:
		return errConflict
	}
	l.version++
	s.lease = l
	return nil
}

func (s *server) setCut(process string, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut[process] = cut
}

const (
	leaseDuration = 15 * time.Second
	retryPeriod   = 2 * time.Second
)

// A process leads, or wants to.
type process struct {
	name   string
	server *server
	skew   time.Duration // how far its clock is ahead
	leads  func(bool)    // is told when it begins and ceases to lead

	seen    int       // the version that it saw last
	changed time.Time // when it saw that version first
}

func (p *process) clock() time.Time { return time.Now().Add(p.skew) }

// A design says whether a process may take a lease that somebody else holds.
type design func(p *process, l lease) bool

// nameOnly has no end: whoever holds the lease holds it until it gives it back.
func nameOnly(*process, lease) bool { return false }

// nameAndTime believes the time in the lease.
func nameAndTime(p *process, l lease) bool {
	return p.clock().Sub(l.renewed) > leaseDuration
}

// sinceItChanged believes only its own clock: it waits until it has seen the lease unchanged for long enough.
func sinceItChanged(p *process, _ lease) bool {
	return time.Since(p.changed) > leaseDuration
}

// run takes the lease when the design allows it, and renews it.
func (p *process) run(ctx context.Context, expired design) {
	look := time.NewTicker(retryPeriod)
	defer look.Stop()
	for {
		l, err := p.server.get(p.name)
		if err == nil && (l.version != p.seen || p.changed.IsZero()) {
			p.seen, p.changed = l.version, time.Now()
		}
		switch {
		case err != nil: // It knows nothing new, and goes on.
		case l.holder == p.name || l.holder == "" || expired(p, l):
			err = p.server.put(p.name, lease{p.name, p.clock(), l.version})
			p.leads(err == nil)
		default:
			p.leads(false)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}
