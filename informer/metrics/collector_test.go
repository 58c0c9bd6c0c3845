package metrics_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/metrics"
)

func ExampleNewCollector() {
	pods := informer.Stats{Lists: 1, Objects: 3, ResourceVersion: "1234567890123456789"}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(func() map[string]informer.Stats { // Or factory.Stats.
		return map[string]informer.Stats{"pods": pods}
	}))
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "informer_objects") || strings.HasPrefix(f.GetName(), "informer_store") {
			fmt.Printf("%s %.0f\n", f.GetName(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output:
	// informer_objects 3
	// informer_store_resource_version 567890123456789
}

// TestCollectorFollowsTheInformers: an informer that is gone from the source is gone from the metrics.
func TestCollectorFollowsTheInformers(t *testing.T) {
	stats := map[string]informer.Stats{
		"pods": {
			RelistReasons: map[string]int64{"expired": 2},
			Handlers:      []informer.HandlerStats{{Name: "h", Pending: 5}},
		},
		"nodes": {},
	}
	c := metrics.NewCollector(func() map[string]informer.Stats { return stats })
	want := `
# HELP informer_handler_pending Current number of notifications that wait for a handler.
# TYPE informer_handler_pending gauge
informer_handler_pending{handler="h",resource="pods"} 5
# HELP informer_relists_total Total number of lists after the first complete one, by reason.
# TYPE informer_relists_total counter
informer_relists_total{reason="expired",resource="pods"} 2
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "informer_relists_total",
		"informer_handler_pending"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	for _, name := range []string{
		"informer_lists_total", "informer_watches_total", "informer_relists_total", "informer_events_total",
		"informer_read_bytes_total",
		"informer_last_event_timestamp_seconds", "informer_objects", "informer_queued_items",
		"informer_processing_latency_seconds",
		"informer_store_resource_version", "informer_unreadable_objects", "informer_unindexed_objects",
		"informer_handler_pending", "informer_handler_busy_seconds_total", "informer_handler_running_seconds",
	} {
		if testutil.CollectAndCount(c, name) == 0 {
			t.Errorf("no %s", name)
		}
	}
	delete(stats, "pods")
	if n := testutil.CollectAndCount(c, "informer_objects"); n != 1 {
		t.Errorf("%d informers left", n)
	}
}
