package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/informer"
)

// collector describes and collects all metrics of a set of informers.
type collector struct {
	source func() map[string]informer.Stats
}

// NewCollector returns a collector of what source returns at the time: the statistics of informers by the name of
// what they hold. [informer.Factory].Stats is a source.
//
// Everything is labelled by resource, handlers' metrics by handler too. informer_queued_items,
// informer_processing_latency_seconds and informer_store_resource_version have the names and meanings of client-go's.
//
// Concurrency: source is called by each collection, perhaps several at once.
func NewCollector(source func() map[string]informer.Stats) prometheus.Collector {
	return collector{source}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"resource"}, labels...), nil)
}

var (
	lists      = desc("informer_lists_total", "Lists begun.")
	watches    = desc("informer_watches_total", "Watches begun.")
	events     = desc("informer_events_total", "Watch events of objects.")
	bookmarks  = desc("informer_bookmarks_total", "Bookmarks.")
	failures   = desc("informer_errors_total", "Lists and watches that failed.")
	read       = desc("informer_read_bytes_total", "Bytes read from the server, decompressed.")
	heard      = desc("informer_last_event_timestamp_seconds", "When the server was last heard of.")
	rebuilds   = desc("informer_rebuilds_total", "Caches taken back because the server's history went back.")
	duplicates = desc("informer_duplicate_events_total", "Events that told nothing new.")
	outdated   = desc("informer_outdated_events_total", "Events from before what the cache held.")
	queued     = desc("informer_queued_items", "Deltas that were learnt and that the cache does not show yet.")
	batches    = desc("informer_batches_total", "Transactions of the cache.")
	objects    = desc("informer_objects", "Objects in the cache.")
	unreadable = desc("informer_unreadable_objects",
		"Objects that could not be decoded: the cache keeps their last readable state.")
	unindexed = desc("informer_unindexed_objects", "Objects that an index function failed on.")
	versions  = desc("informer_store_resource_version",
		"The last 15 digits of the resource version up to which the cache is complete.")
	delivered = desc("informer_handler_notifications_total", "Calls of a handler.", "handler")
	pending   = desc("informer_handler_pending", "Notifications a handler has not been given yet.", "handler")
	merged    = desc("informer_handler_merged_total", "Notifications that later ones took the place of.", "handler")
	panics    = desc("informer_handler_panics_total", "Calls of a handler that panicked.", "handler")
	busy      = desc("informer_handler_busy_seconds_total", "Time spent in calls of a handler.", "handler")
	running   = desc("informer_handler_running_seconds",
		"How long the run of calls that is under way has lasted; a handler that is stuck shows here.", "handler")
	relists    = desc("informer_relists_total", "Lists after the first complete one, by what led to them.", "reason")
	processing = desc("informer_processing_latency_seconds",
		"How long transactions of the cache took, the hand-over to handlers included.")
)

func lastEvent(s *informer.Stats) float64 {
	if s.LastEvent.IsZero() {
		return 0
	}
	return float64(s.LastEvent.UnixMilli()) / 1000
}

// version is what fits of a resource version into a float without loss.
//
// Source: storeResourceVersion in k8s.io/client-go/tools/cache v0.37.2.
func version(s *informer.Stats) float64 {
	rv := s.ResourceVersion
	if len(rv) > 15 {
		rv = rv[len(rv)-15:]
	}
	n, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return 0
	}
	return float64(n)
}

// Describe is described at [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect is described at [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for name, s := range c.source() {
		counter(lists, float64(s.Lists), name)
		counter(watches, float64(s.Watches), name)
		counter(events, float64(s.Events), name)
		counter(bookmarks, float64(s.Bookmarks), name)
		counter(failures, float64(s.Errors), name)
		counter(read, float64(s.Bytes), name)
		gauge(heard, lastEvent(&s), name)
		counter(rebuilds, float64(s.Rebuilds), name)
		counter(duplicates, float64(s.Duplicates), name)
		counter(outdated, float64(s.Outdated), name)
		gauge(queued, float64(s.Queued), name)
		counter(batches, float64(s.Batches), name)
		gauge(objects, float64(s.Objects), name)
		gauge(unreadable, float64(s.Unreadable), name)
		gauge(unindexed, float64(s.Unindexed), name)
		gauge(versions, version(&s), name)
		ch <- prometheus.MustNewConstHistogram(processing, s.Processing.Count, s.Processing.Sum.Seconds(),
			s.Processing.Buckets(), name)
		for reason, n := range s.RelistReasons {
			counter(relists, float64(n), name, reason)
		}
		for i := range s.Handlers {
			h := &s.Handlers[i]
			counter(delivered, float64(h.Delivered), name, h.Name)
			gauge(pending, float64(h.Pending), name, h.Name)
			counter(merged, float64(h.Merged), name, h.Name)
			counter(panics, float64(h.Panics), name, h.Name)
			counter(busy, h.Busy.Seconds(), name, h.Name)
			gauge(running, h.Running.Seconds(), name, h.Name)
		}
	}
}
