package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/reconcile"
)

// The metrics of controllers.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller/metrics, for the names that start with controller_runtime.
var (
	reconciles = newFamily("controller_runtime_reconcile_total", "Total number of reconciliations per controller",
		"controller", "result")
	reconcileErrors = newFamily("controller_runtime_reconcile_errors_total",
		"Total number of reconciliation errors per controller", "controller")
	reconcilePanics = newFamily("controller_runtime_reconcile_panics_total",
		"Total number of reconciliation panics per controller", "controller")
	reconcileEnds = newFamily("controller_runtime_terminal_reconcile_errors_total",
		"Total number of terminal reconciliation errors per controller", "controller")
	reconcileLate = newFamily("controller_runtime_reconcile_timeouts_total",
		"Total number of reconciliation timeouts per controller", "controller")
	maxWorkers = newFamily("controller_runtime_max_concurrent_reconciles",
		"Maximum number of concurrent reconciles per controller", "controller")
	activeWorkers = newFamily("controller_runtime_active_workers", "Number of currently used workers per controller",
		"controller")
	sourceEvents = newFamily("controller_source_events_total",
		"Total number of changes that sources turned into keys", "controller")
	reconcileHung = newFamily("controller_reconcile_hung_total",
		"Total number of reconciliations that took longer than they may", "controller")
	reconcileStale = newFamily("controller_reconcile_stale_total",
		"Total number of reconciliations put off because the cache was behind a write of this process", "controller")
	reconcileDrops = newFamily("controller_reconcile_dropped_total",
		"Total number of keys given up until they are added again", "controller")
	heldKeys = newFamily("controller_held_keys", "Current number of keys that wait for this process to lead",
		"controller")
)

// newReconcileTimes returns the histogram of all controllers.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller/metrics, for help and buckets.
func newReconcileTimes() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "controller_runtime_reconcile_time_seconds", Help: "Length of time per reconciliation per controller",
		Buckets: []float64{
			0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
			1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
		},
	}, []string{"controller"})
}

func collectController(out chan<- prometheus.Metric, name string, s reconcile.Stats) {
	reconciles.counter(out, float64(s.Done), name, "success")
	reconciles.counter(out, float64(s.Errors), name, "error")
	reconciles.counter(out, float64(s.Requeues), name, "requeue_after")
	reconciles.counter(out, float64(s.Stale), name, "requeue")
	reconcileErrors.counter(out, float64(s.Errors), name)
	reconcileEnds.counter(out, float64(s.Terminal), name)
	reconcileLate.counter(out, float64(s.Timeouts), name)
	reconcilePanics.counter(out, float64(s.Panics), name)
	reconcileHung.counter(out, float64(s.Hung), name)
	reconcileStale.counter(out, float64(s.Stale), name)
	reconcileDrops.counter(out, float64(s.Dropped), name)
	sourceEvents.counter(out, float64(s.Events), name)
	maxWorkers.gauge(out, float64(s.Workers), name)
	activeWorkers.gauge(out, float64(s.InFlight), name)
	heldKeys.gauge(out, float64(s.Held), name)
}

// The metrics of the read-your-own-writes client.
var (
	clientWaits = newFamily("client_own_write_waits_total",
		"Total number of cached reads that waited for an own write to show")
	clientWaited = newFamily("client_own_write_wait_seconds_total",
		"Total time that cached reads waited for own writes to show")
	clientStale = newFamily("client_stale_reads_total",
		"Total number of cached reads that gave up waiting for an own write")
	clientPending = newFamily("client_own_writes_pending",
		"Current number of own writes that a cache has not shown, by whether their outcome is known", "outcome")
)

func collectClient(out chan<- prometheus.Metric, s client.Stats) {
	clientWaits.counter(out, float64(s.Waits))
	clientWaited.counter(out, s.Waited.Seconds())
	clientStale.counter(out, float64(s.Stale))
	clientPending.gauge(out, float64(s.Unseen), "known")
	clientPending.gauge(out, float64(s.Unknown), "unknown")
}

// The metrics of leader election. The status is 1 while this process leads.
//
// Source: k8s.io/component-base v0.37.2 metrics/prometheus/clientgo/leaderelection.
var (
	leaderStatus = newFamily("leader_election_master_status",
		"Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. "+
			"'name' is the string used to identify the lease.", "name")
	leaderSlow = newFamily("leader_election_slowpath_total",
		"Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the "+
			"lease.", "name")
)

// The metrics of the event sender.
var (
	eventsTotal  = newFamily("events_total", "Total number of recorded events by what became of them", "result")
	eventsQueued = newFamily("events_queued", "Current number of events that wait to be sent")
)

func collectEvents(out chan<- prometheus.Metric, s events.Stats) {
	eventsQueued.gauge(out, float64(s.Queued))
	for result, n := range map[string]int{
		"sent": s.Sent, "filtered": s.Filtered, "rejected": s.Rejected, "givenUp": s.GivenUp,
		"overflowed": s.Overflowed,
		"invalid":    s.Invalid, "late": s.Late, "undelivered": s.Undelivered,
	} {
		eventsTotal.counter(out, float64(n), result)
	}
}
