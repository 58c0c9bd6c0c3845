package informer

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/wording"
	"github.com/flyball-dev/flyball/internal/latency"
)

// Health is the state of an informer's connection to its server, and of its cache.
type Health struct {
	// Resource is the plural name, with the group: "deployments.apps".
	Resource string
	// Namespace is "" for all namespaces and for cluster-scoped resources.
	Namespace string
	// Synced is true once the cache has held a complete list. It stays true when the server goes away.
	Synced bool
	// Err is why the cache may be behind: the last error of a list or watch, a [RequestError]. nil while a watch is
	// open.
	Err error
	// Since is when the errors began or, if Err is nil, when the connection was last restored. Zero before the first
	// attempt.
	Since time.Time
	// Inconsistent is why the cache is known to differ from the server: an [ErrHistoryReset], or an object that it
	// holds although the server answered that it does not exist. nil otherwise, and again after the next list.
	Inconsistent error
	// Unreadable counts objects that could not be decoded. The cache keeps their last readable state, if there was one.
	// UnreadableErr, an [objects.DecodeError], names one of them.
	Unreadable    int
	UnreadableErr error
	// Unindexed counts objects for which an index function failed: ByIndex does not find them.
	Unindexed int
	// IndexErr is the error for one of them.
	IndexErr error
}

// Stats are the counters of an informer since it was made. Counters never decrease.
type Stats struct {
	// Lists counts all lists begun; Relists those begun after the first complete one; Rebuilds those that took the
	// cache back to an earlier resource version because the server's history went back.
	Lists, Relists, Rebuilds int64
	// Watches counts watches begun, including those that failed to open.
	Watches int64
	// Events counts watch events that carry an object; Bookmarks those that only move the watermark.
	Events, Bookmarks int64
	// Duplicates counts events with a state that the cache already held; Outdated those with an earlier state. Neither
	// reaches a handler.
	Duplicates, Outdated int64
	// Errors counts failed lists and watches.
	Errors int64
	// RelistReasons splits Relists by the failure that led to them: "expired", "version ahead", "server error",
	// "refused", "malformed", "unverifiable" and others. A failed list can itself be the reason. The sum is Relists.
	RelistReasons map[string]int64
	// Bytes counts the decompressed bytes read from the server; 0 if the ListerWatcher does not count them.
	Bytes int64
	// Objects is the number of objects in the cache, and ResourceVersion its watermark. Unreadable and Unindexed are as
	// in [Health].
	Objects, Unreadable, Unindexed int64
	ResourceVersion                string
	// Queued is the number of deltas on their way from the reflector to the handlers' log; the cache may show some of
	// them already. Batches counts the transactions. Processing is how long they took, including the append to the log.
	Queued, Batches int64
	Processing      latency.Latency
	// LastEvent is when the server last sent something: an event, a bookmark or a list. Zero means never.
	LastEvent time.Time
	// Handlers has one element per registered handler, in order of registration.
	Handlers []handler.Stats
}

// syncError reports that an informer had not synced when the wait for it ended. Its text is that of cause.
type syncError struct {
	cause error // the last [RequestError]
	ended error // why the wait ended: the context's error, [ErrStopped] or [ErrForbidden]
}

// notSynced returns the error of a wait. cause is nil if nothing failed and the list just takes long.
func notSynced(resource, namespace string, cause, ended error) error {
	if cause == nil {
		return fmt.Errorf("%s %s not synced: %w", resource, wording.Where(namespace), ended)
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
	sum.Handlers = s.fan.Stats()
	return sum
}

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

// logIndexErr logs that an index function failed, once until all objects are in all indexes again.
func (s *SharedInformer[T]) logIndexErr(ctx context.Context) {
	_, err := s.indexer.Unindexed()
	if err != nil && !s.unindexed {
		klog.FromContext(ctx).Info("Index function failed; object left out of the index",
			"resource", s.o.Resource, "reason", err.Error())
	}
	s.unindexed = err != nil
}
