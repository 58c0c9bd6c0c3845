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

// metric is a number of one informer and where it comes from.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*informer.Stats) float64
}

// handlerMetric is a number of one handler.
type handlerMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*informer.HandlerStats) float64
}

var (
	relists    = desc("informer_relists_total", "Lists after the first complete one, by what led to them.", "reason")
	processing = desc("informer_processing_latency_seconds",
		"How long transactions of the cache took, the hand-over to handlers included.")

	perInformer = []metric{
		{
			desc("informer_lists_total", "Lists begun."), prometheus.CounterValue,
			func(s *informer.Stats) float64 { return float64(s.Lists) },
		},
		{
			desc("informer_watches_total", "Watches begun."), prometheus.CounterValue,
			func(s *informer.Stats) float64 { return float64(s.Watches) },
		},
		{
			desc("informer_events_total", "Watch events of objects."), prometheus.CounterValue,
			func(s *informer.Stats) float64 { return float64(s.Events) },
		},
		{
			desc("informer_bookmarks_total", "Bookmarks."), prometheus.CounterValue,
			func(s *informer.Stats) float64 { return float64(s.Bookmarks) },
		},
		{
			desc("informer_errors_total", "Lists and watches that failed."), prometheus.CounterValue,
			func(s *informer.Stats) float64 { return float64(s.Errors) },
		},
		{
			desc("informer_read_bytes_total", "Bytes read from the server, decompressed."), prometheus.CounterValue,
			func(s *informer.Stats) float64 { return float64(s.Bytes) },
		},
		{
			desc("informer_last_event_timestamp_seconds", "When the server was last heard of."), prometheus.GaugeValue,
			lastEvent,
		},
		{
			desc("informer_rebuilds_total", "Caches taken back because the server's history went back."),
			prometheus.CounterValue, func(s *informer.Stats) float64 { return float64(s.Rebuilds) },
		},
		{
			desc("informer_duplicate_events_total", "Events that told nothing new."), prometheus.CounterValue,
			func(s *informer.Stats) float64 { return float64(s.Duplicates) },
		},
		{
			desc("informer_outdated_events_total", "Events from before what the cache held."), prometheus.CounterValue,
			func(s *informer.Stats) float64 { return float64(s.Outdated) },
		},
		{
			desc("informer_queued_items", "Deltas that were learnt and that the cache does not show yet."),
			prometheus.GaugeValue, func(s *informer.Stats) float64 { return float64(s.Queued) },
		},
		{
			desc("informer_batches_total", "Transactions of the cache."), prometheus.CounterValue,
			func(s *informer.Stats) float64 { return float64(s.Batches) },
		},
		{
			desc("informer_objects", "Objects in the cache."), prometheus.GaugeValue,
			func(s *informer.Stats) float64 { return float64(s.Objects) },
		},
		{
			desc("informer_unreadable_objects",
				"Objects that could not be decoded: the cache keeps their last readable state."),
			prometheus.GaugeValue, func(s *informer.Stats) float64 { return float64(s.Unreadable) },
		},
		{
			desc("informer_unindexed_objects", "Objects that an index function failed on."), prometheus.GaugeValue,
			func(s *informer.Stats) float64 { return float64(s.Unindexed) },
		},
		{
			desc("informer_store_resource_version",
				"The last 15 digits of the resource version up to which the cache is complete."),
			prometheus.GaugeValue, version,
		},
	}

	perHandler = []handlerMetric{
		{
			desc("informer_handler_notifications_total", "Calls of a handler.", "handler"), prometheus.CounterValue,
			func(h *informer.HandlerStats) float64 { return float64(h.Delivered) },
		},
		{
			desc("informer_handler_pending", "Notifications a handler has not been given yet.", "handler"),
			prometheus.GaugeValue, func(h *informer.HandlerStats) float64 { return float64(h.Pending) },
		},
		{
			desc("informer_handler_merged_total", "Notifications that later ones took the place of.", "handler"),
			prometheus.CounterValue, func(h *informer.HandlerStats) float64 { return float64(h.Merged) },
		},
		{
			desc("informer_handler_panics_total", "Calls of a handler that panicked.", "handler"),
			prometheus.CounterValue, func(h *informer.HandlerStats) float64 { return float64(h.Panics) },
		},
		{
			desc("informer_handler_busy_seconds_total", "Time spent in calls of a handler.", "handler"),
			prometheus.CounterValue, func(h *informer.HandlerStats) float64 { return h.Busy.Seconds() },
		},
		{
			desc("informer_handler_running_seconds",
				"How long the run of calls that is under way has lasted; a handler that is stuck shows here.",
				"handler"), prometheus.GaugeValue,
			func(h *informer.HandlerStats) float64 { return h.Running.Seconds() },
		},
	}
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
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- relists
	ch <- processing
	for _, m := range perInformer {
		ch <- m.desc
	}
	for _, m := range perHandler {
		ch <- m.desc
	}
}

// Collect is described at [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for name, s := range c.source() {
		for _, m := range perInformer {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&s), name)
		}
		ch <- prometheus.MustNewConstHistogram(processing, s.Processing.Count, s.Processing.Sum.Seconds(),
			s.Processing.Buckets(), name)
		for reason, n := range s.RelistReasons {
			ch <- prometheus.MustNewConstMetric(relists, prometheus.CounterValue, float64(n), name, reason)
		}
		for i := range s.Handlers {
			h := &s.Handlers[i]
			for _, m := range perHandler {
				ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(h), name, h.Name)
			}
		}
	}
}
