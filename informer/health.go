package informer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer/internal/fanout"
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
	// Since is when the errors began, or, without one, when the connection was last made good; zero before the first attempt.
	Since time.Time
	// Doubt is why the cache is known to be wrong, until it has been listed anew: an [ErrAnotherHistory], or a
	// [ContradictionError]; nil when nothing is known against it.
	Doubt error
	// Unreadable counts objects that could not be decoded: the cache keeps their last readable state, or nothing. UnreadableErr, a
	// [DecodeError], names one of them.
	Unreadable    int
	UnreadableErr error
	// Unindexed counts objects in the cache that an index function failed on: ByIndex does not find them.
	Unindexed int
	// IndexErr is the error of one of those.
	IndexErr error
}

// Stats counts what an informer did since it was made. Counters never decrease.
type Stats struct {
	// Lists counts lists begun, the first included; Relists those after the first complete one; Rebuilds those that took the
	// cache back to an earlier resource version because the server's history had gone back.
	Lists, Relists, Rebuilds int64
	// Watches counts watches begun, those that failed to open included.
	Watches int64
	// Events counts watch events of objects; Bookmarks those that only move the watermark.
	Events, Bookmarks int64
	// Duplicates counts events for a state that the cache already held; Outdated those for an earlier one. Neither reaches
	// a handler.
	Duplicates, Outdated int64
	// Errors counts failed lists and watches.
	Errors int64
	// RelistReasons splits Relists by what led to them, the failure of the list before included: "expired", "ahead", "server error", "refused",
	// "senseless", "doubtful" and others. Its sum is Relists.
	RelistReasons map[string]int64
	// Bytes counts what was read from the server, decompressed; 0 when the ListerWatcher does not say.
	Bytes int64
	// Objects is the number of objects in the cache now, ResourceVersion its watermark. Unreadable and Unindexed are as in
	// [Health].
	Objects, Unreadable, Unindexed int64
	ResourceVersion                string
	// Expected is the number of states that writers wait for the cache to show; see [Expected].
	Expected int64
	// Queued is the number of deltas that the reflector appended and the handlers were not given yet; the cache may show them already.
	// Batches counts the transactions, and Processing is how long they took, the hand-over to the handlers included.
	Queued, Batches int64
	Processing      Latency
	// LastEvent is when the server was last heard of: an event, a bookmark or a list. Zero: never.
	LastEvent time.Time
	// Handlers has one element for each registered handler, in order of registration.
	Handlers []fanout.HandlerStats
}

// counters is the reflector's part of [Stats], live.
type counters struct {
	lists, relists, rebuilds, watches atomic.Int64
	events, bookmarks                 atomic.Int64
	errors                            atomic.Int64
	lastEvent                         atomic.Int64 // Unix nanoseconds; 0: never
	reasons                           [failures]atomic.Int64
}

func (c *counters) heard() { c.lastEvent.Store(time.Now().UnixNano()) }

// add makes s the sum of the counters of two sources.
func (s *Stats) add(o Stats) {
	s.Lists += o.Lists
	s.Relists += o.Relists
	s.Rebuilds += o.Rebuilds
	s.Watches += o.Watches
	s.Events += o.Events
	s.Bookmarks += o.Bookmarks
	s.Errors += o.Errors
	s.Bytes += o.Bytes
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

func (c *counters) snapshot() Stats {
	s := Stats{
		Lists: c.lists.Load(), Relists: c.relists.Load(), Rebuilds: c.rebuilds.Load(), Watches: c.watches.Load(),
		Events: c.events.Load(), Bookmarks: c.bookmarks.Load(),
		Errors: c.errors.Load(),
	}
	for f := range c.reasons {
		if n := c.reasons[f].Load(); n > 0 {
			if s.RelistReasons == nil {
				s.RelistReasons = map[string]int64{}
			}
			s.RelistReasons[failure(f).String()] = n
		}
	}
	if ns := c.lastEvent.Load(); ns != 0 {
		s.LastEvent = time.Unix(0, ns)
	}
	return s
}

// RequestError is a failed list or watch, worded for the person who has to do something about it.
type RequestError struct {
	// Verb is "list" or "watch".
	Verb string
	// Resource is as in [Health].
	Resource string
	// Namespace is "" for all.
	Namespace string
	Err       error
}

func (e *RequestError) Error() string {
	return fmt.Sprintf("cannot %s %s %s: %s", e.Verb, e.Resource, where(e.Namespace), reason(e.Err))
}

func (e *RequestError) Unwrap() error { return e.Err }

// SyncError says that an informer had not synced when the wait for it ended.
type SyncError struct {
	Resource, Namespace string
	// Cause is the last [RequestError]; nil when there was none, and the list just takes long.
	Cause error
	// Since is when the errors began.
	Since time.Time
	// Err is why the wait ended: the context's error, [ErrStopped] or [ErrRefused].
	Err error
}

func (e *SyncError) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("%s %s not synced: %v", e.Resource, where(e.Namespace), e.Err)
	}
	return e.Cause.Error()
}

// Unwrap gives both the cause and the reason the wait ended.
func (e *SyncError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Cause, e.Err}
}

func where(namespace string) string {
	if namespace == "" {
		return "at the cluster scope"
	}
	return "in namespace " + namespace
}

// reason words the cause of a failed request without what the sentence around it says already.
func reason(err error) string {
	var unreachable *url.Error
	if errors.As(err, &unreachable) {
		return "cannot reach " + serverOf(unreachable.URL) + ": " + innermost(unreachable.Err)
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		// The server says `pods is forbidden: User "x" cannot …` or `pods "p" is forbidden: …`.
		message := status.Status().Message
		if _, why, found := strings.Cut(message, " is forbidden: "); found {
			return "forbidden: " + why
		}
		if apierrors.IsUnauthorized(err) {
			return "unauthorized: the server does not accept the credentials: " + message
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the server did not answer in time"
	}
	return err.Error()
}

// serverOf cuts a request's URL down to scheme and host.
func serverOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	return u.Scheme + "://" + u.Host
}

// innermost is the error at the end of the chain: "connection refused" of "dial tcp 127.0.0.1:1: connect: connection refused".
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// Stats is described at [Informer].
func (s *SharedInformer[T]) Stats() Stats {
	var sum Stats
	for _, src := range s.sources {
		sum.add(src.reflector.link.snapshot())
		if lw, ok := src.reflector.lw.(interface{ BytesRead() int64 }); ok {
			sum.Bytes += lw.BytesRead()
		}
		unreadable, _ := src.reflector.link.unreadables()
		sum.Unreadable += int64(unreadable)
	}
	unindexed, _ := s.indexer.Unindexed()
	sum.Unindexed = int64(unindexed)
	sum.Duplicates, sum.Outdated = s.duplicates.Load(), s.outdated.Load()
	sum.Objects, sum.ResourceVersion = int64(s.indexer.Len()), s.indexer.ResourceVersion()
	sum.Queued, sum.Batches, sum.Processing = int64(s.fifo.Pending()), s.batches.Load(), s.processing.snapshot()
	sum.Handlers, sum.Expected = s.fan.Stats(), int64(s.expected.count())
	return sum
}
