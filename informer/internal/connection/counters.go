package connection

import (
	"sync/atomic"
	"time"
)

// Counts is a copy of a reflector's counters. Its fields are those of informer.Stats.
type Counts struct {
	Lists, Relists, Rebuilds, Watches, Events, Bookmarks, Errors int64

	RelistReasons map[string]int64
	LastEvent     time.Time
}

// Counters are the live counters of a reflector.
type Counters struct {
	Lists, Relists, Rebuilds, Watches atomic.Int64
	Events, Bookmarks                 atomic.Int64
	Errors                            atomic.Int64
	LastEvent                         atomic.Int64 // Unix nanoseconds; 0: never
	Reasons                           [Failures]atomic.Int64
}

// Received records the time at which something came from the server.
func (c *Counters) Received() { c.LastEvent.Store(time.Now().UnixNano()) }

// Counts returns the current counts.
func (c *Counters) Counts() Counts {
	s := Counts{
		Lists: c.Lists.Load(), Relists: c.Relists.Load(), Rebuilds: c.Rebuilds.Load(), Watches: c.Watches.Load(),
		Events: c.Events.Load(), Bookmarks: c.Bookmarks.Load(),
		Errors: c.Errors.Load(),
	}
	for f := range c.Reasons {
		if n := c.Reasons[f].Load(); n > 0 {
			if s.RelistReasons == nil {
				s.RelistReasons = map[string]int64{}
			}
			s.RelistReasons[Failure(f).String()] = n
		}
	}
	if ns := c.LastEvent.Load(); ns != 0 {
		s.LastEvent = time.Unix(0, ns)
	}
	return s
}
