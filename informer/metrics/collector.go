package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/informer"
)

// collector collects the metrics of a set of informers.
type collector struct {
	source func() map[string]informer.Stats
}

// NewCollector returns a collector that calls source at each scrape. source returns the statistics of informers, with
// the names of their resources as keys, as [informer.Factory].Stats does.
//
// All metrics have the label resource. Those of handlers also have the label handler, and informer_relists_total has
// the label reason. informer_queued_items, informer_processing_latency_seconds and informer_store_resource_version have
// the names and meanings of client-go's.
//
// Concurrency: source may be called by several scrapes at the same time.
func NewCollector(source func() map[string]informer.Stats) prometheus.Collector {
	return collector{source}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"resource"}, labels...), nil)
}

var (
	lists     = desc("informer_lists_total", "Total number of lists that were started.")
	watches   = desc("informer_watches_total", "Total number of watches that were started.")
	events    = desc("informer_events_total", "Total number of watch events, without bookmarks.")
	bookmarks = desc("informer_bookmarks_total", "Total number of bookmarks.")
	failures  = desc("informer_errors_total", "Total number of lists and watches that failed.")
	read      = desc("informer_read_bytes_total", "Total number of bytes read from the server, decompressed.")
	lastEvent = desc("informer_last_event_timestamp_seconds", "Unix time of the last data from the server.")
	rebuilds  = desc("informer_rebuilds_total",
		"Total number of times that the cache was rebuilt because the server's history went back.")
	duplicates = desc("informer_duplicate_events_total", "Total number of events that changed nothing.")
	outdated   = desc("informer_outdated_events_total",
		"Total number of events with an earlier resource version than the cached one.")
	queued     = desc("informer_queued_items", "Current number of deltas that the cache does not have yet.")
	batches    = desc("informer_batches_total", "Total number of batches of deltas that were applied to the cache.")
	objects    = desc("informer_objects", "Current number of objects in the cache.")
	unreadable = desc("informer_unreadable_objects",
		"Current number of objects that could not be decoded; the cache has their last readable state.")
	unindexed = desc("informer_unindexed_objects", "Current number of objects for which an index function fails.")
	versions  = desc("informer_store_resource_version",
		"Last 15 digits of the resource version up to which the cache is complete.")
	delivered = desc("informer_handler_notifications_total", "Total number of calls of a handler.", "handler")
	pending   = desc("informer_handler_pending", "Current number of notifications that wait for a handler.", "handler")
	merged    = desc("informer_handler_merged_total",
		"Total number of notifications that were merged into later ones because the handler was behind.", "handler")
	panics  = desc("informer_handler_panics_total", "Total number of calls of a handler that panicked.", "handler")
	busy    = desc("informer_handler_busy_seconds_total", "Total time spent in calls of a handler.", "handler")
	running = desc("informer_handler_running_seconds",
		"Duration of the calls of a handler that are in progress; it grows while a handler is stuck.", "handler")
	relists = desc("informer_relists_total", "Total number of lists after the first complete one, by reason.",
		"reason")
	processing = desc("informer_processing_latency_seconds",
		"Duration of applying a batch to the cache and passing it to handlers.")
)

func lastEventTime(s *informer.Stats) float64 {
	if s.LastEvent.IsZero() {
		return 0
	}
	return float64(s.LastEvent.UnixMilli()) / 1000
}

// version returns the last digits of the resource version, as many as a float can hold exactly.
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

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements [prometheus.Collector].
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
		gauge(lastEvent, lastEventTime(&s), name)
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
