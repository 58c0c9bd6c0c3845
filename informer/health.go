package informer

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/fanout"
	"github.com/flyball-dev/flyball/internal/latency"
)

// Health is how an informer stands with its server.
type Health struct {
	// Resource is the plural name, with the group: "deployments.apps".
	Resource string
	// Namespace is "" for all namespaces and for cluster-scoped resources.
	Namespace string
	// Synced says that the cache has held a complete list. It stays true when the server goes away.
	Synced bool
	// Err is why the cache may be behind: the last list or watch error, a [RequestError]; nil while a watch is open.
	Err error
	// Since is when the errors began, or, without one, when the connection was last made good; zero before the first
	// attempt.
	Since time.Time
	// Doubt is why the cache is known to be wrong, until it has been listed anew: an [ErrAnotherHistory], or the server
	// says that it does not have an object that the cache holds. Nil when nothing is known against the cache.
	Doubt error
	// Unreadable counts objects that could not be decoded: the cache keeps their last readable state, or nothing.
	// UnreadableErr, a [listwatch.DecodeError], names one of them.
	Unreadable    int
	UnreadableErr error
	// Unindexed counts objects in the cache that an index function failed on: ByIndex does not find them.
	Unindexed int
	// IndexErr is the error of one of those.
	IndexErr error
}

// Stats counts what an informer did since it was made. Counters never decrease.
type Stats struct {
	// Lists counts lists begun, the first included; Relists those after the first complete one; Rebuilds those that
	// took the cache back to an earlier resource version because the server's history had gone back.
	Lists, Relists, Rebuilds int64
	// Watches counts watches begun, those that failed to open included.
	Watches int64
	// Events counts watch events of objects; Bookmarks those that only move the watermark.
	Events, Bookmarks int64
	// Duplicates counts events for a state that the cache already held; Outdated those for an earlier one. Neither
	// reaches a handler.
	Duplicates, Outdated int64
	// Errors counts failed lists and watches.
	Errors int64
	// RelistReasons splits Relists by what led to them, the failure of the list before included: "expired", "ahead",
	// "server error", "refused", "malformed", "unverifiable" and others. Its sum is Relists.
	RelistReasons map[string]int64
	// Bytes counts what was read from the server, decompressed; 0 when the ListerWatcher does not say.
	Bytes int64
	// Objects is the number of objects in the cache now, ResourceVersion its watermark. Unreadable and Unindexed are
	// as in [Health].
	Objects, Unreadable, Unindexed int64
	ResourceVersion                string
	// Expected is the number of states that this process wrote and waits for the cache to show.
	Expected int64
	// Queued is the number of deltas that the reflector appended and the handlers were not given yet; the cache may
	// show them already. Batches counts the transactions, and Processing is how long they took, the hand-over to the
	// handlers included.
	Queued, Batches int64
	Processing      latency.Latency
	// LastEvent is when the server was last heard of: an event, a bookmark or a list. Zero: never.
	LastEvent time.Time
	// Handlers has one element for each registered handler, in order of registration.
	Handlers []fanout.HandlerStats
}

// syncError says that an informer had not synced when the wait for it ended. Its text is that of cause.
type syncError struct {
	cause error // the last [RequestError]
	ended error // why the wait ended: the context's error, [ErrStopped] or [ErrRefused]
}

// notSynced returns the error of a wait. cause is nil when there was no error, and the list just takes long.
func notSynced(resource, namespace string, cause, ended error) error {
	if cause == nil {
		return fmt.Errorf("%s %s not synced: %w", resource, connection.Where(namespace), ended)
	}
	return &syncError{cause, ended}
}

func (e *syncError) Error() string { return e.cause.Error() }

func (e *syncError) Unwrap() []error { return []error{e.cause, e.ended} }

// Stats is described at [Informer].
func (s *SharedInformer[T]) Stats() Stats {
	var sum Stats
	for _, src := range s.sources {
		sum.add(src.status.Counts())
		if lw, ok := src.lw.(interface{ BytesRead() int64 }); ok {
			sum.Bytes += lw.BytesRead()
		}
		unreadable, _ := src.status.Unreadables()
		sum.Unreadable += int64(unreadable)
	}
	unindexed, _ := s.indexer.Unindexed()
	sum.Unindexed = int64(unindexed)
	sum.Duplicates, sum.Outdated = s.duplicates.Load(), s.outdated.Load()
	sum.Objects, sum.ResourceVersion = int64(s.indexer.Len()), s.indexer.ResourceVersion()
	sum.Queued, sum.Batches, sum.Processing = int64(s.fifo.Pending()), s.batches.Load(), s.processing.Snapshot()
	sum.Handlers, sum.Expected = s.fan.Stats(), int64(s.check.Expected())
	return sum
}

// add makes s the sum of its counters and those of one more reflector.
func (s *Stats) add(o connection.Counts) {
	s.Lists += o.Lists
	s.Relists += o.Relists
	s.Rebuilds += o.Rebuilds
	s.Watches += o.Watches
	s.Events += o.Events
	s.Bookmarks += o.Bookmarks
	s.Errors += o.Errors
	for reason, n := range o.RelistReasons {
		if s.RelistReasons == nil {
			s.RelistReasons = map[string]int64{}
		}
		s.RelistReasons[reason] += n
	}
	if o.LastEvent.After(s.LastEvent) {
		s.LastEvent = o.LastEvent
	}
}
