package connection

import (
	"sync/atomic"
	"time"
)

// Counts counts what a reflector did. The names are those of informer.Stats.
type Counts struct {
	Lists, Relists, Rebuilds, Watches, Events, Bookmarks, Errors int64

	RelistReasons map[string]int64
	LastEvent     time.Time
}

// Counters is Counts, live.
type Counters struct {
	Lists, Relists, Rebuilds, Watches atomic.Int64
	Events, Bookmarks                 atomic.Int64
	Errors                            atomic.Int64
	LastEvent                         atomic.Int64 // Unix nanoseconds; 0: never
	Reasons                           [Failures]atomic.Int64
}

// Heard notes that the server was heard of.
func (c *Counters) Heard() { c.LastEvent.Store(time.Now().UnixNano()) }

// Counts returns the counts of now.
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
