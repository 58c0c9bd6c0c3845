package metrics

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/latency"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

func scrape(t *testing.T, r *Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func expect(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestQueueMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New()
		q := workqueue.New(workqueue.Options[string]{Name: "endpoint", Metrics: r})
		defer q.ShutDown()
		q.Add("a")
		q.Add("b")
		time.Sleep(3 * time.Second)
		item, err := q.Get(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		expect(t, scrape(t, r),
			`workqueue_depth{name="endpoint"} 1`, `workqueue_processing{name="endpoint"} 1`,
			`workqueue_unfinished_work_seconds{name="endpoint"} 2`,
			`workqueue_longest_running_processor_seconds{name="endpoint"} 2`)
		q.AddRateLimited(item.Key)
		q.Done(item.Key)
		expect(t, scrape(t, r),
			`workqueue_adds_total{name="endpoint"} 2`, `workqueue_retries_total{name="endpoint"} 1`,
			`workqueue_queue_duration_seconds_sum{name="endpoint"} 3`,
			`workqueue_queue_duration_seconds_count{name="endpoint"} 1`,
			`workqueue_work_duration_seconds_sum{name="endpoint"} 2`,
			`workqueue_unfinished_work_seconds{name="endpoint"} 0`)
	})
}

// fill adds to a registry the metrics of a process that does everything.
func fill(r *Registry, leading *bool) {
	took := latency.New([]time.Duration{50 * time.Millisecond, 100 * time.Millisecond})
	took.Note(70 * time.Millisecond)
	r.Controller("c", func() reconcile.Stats {
		return reconcile.Stats{
			Events: 9, Syncs: 12, Done: 3, Requeues: 3, Errors: 2, Terminal: 1, Timeouts: 1, Panics: 1, Dropped: 1,
			Hung: 1, Stale: 4,
			InFlight: 3, Workers: 8, Held: 7, ReconcileTime: took.Snapshot(),
		}
	})
	r.Throttled("api:6443", 3*time.Second)
	r.Informers(func() map[string]informer.Stats {
		return map[string]informer.Stats{
			"pods": {
				Objects: 7, Events: 8, Lists: 2, Relists: 1, Watches: 4, Errors: 3,
				LastEvent: time.Unix(12, 500e6),
			},
		}
	})
	r.Events(func() events.Stats { return events.Stats{Sent: 6, Queued: 2, Overflowed: 1} })
	r.Client(func() client.Stats {
		return client.Stats{Waits: 3, Waited: 1500 * time.Millisecond, Stale: 1, Unseen: 5, Unknown: 2}
	})
	r.Leader("kube", func() leader.Status { return leader.Status{Leading: *leading, SlowRenewals: 3} })
	r.Request("GET", "api:6443", 200, 300*time.Millisecond)
	r.Request("POST", "api:6443", 0, time.Minute)
}

func TestProcessMetrics(t *testing.T) {
	r := New()
	leading := false
	fill(r, &leading)
	expect(t, scrape(t, r),
		`controller_runtime_reconcile_total{controller="c",result="success"} 3`,
		`controller_runtime_reconcile_total{controller="c",result="error"} 2`,
		`controller_runtime_reconcile_errors_total{controller="c"} 2`,
		`controller_runtime_reconcile_panics_total{controller="c"} 1`,
		`controller_runtime_reconcile_total{controller="c",result="requeue_after"} 3`,
		`controller_runtime_reconcile_total{controller="c",result="requeue"} 4`,
		`controller_runtime_terminal_reconcile_errors_total{controller="c"} 1`,
		`controller_runtime_reconcile_timeouts_total{controller="c"} 1`,
		`controller_runtime_reconcile_time_seconds_bucket{controller="c",le="0.05"} 0`,
		`controller_runtime_reconcile_time_seconds_bucket{controller="c",le="0.1"} 1`,
		`controller_runtime_max_concurrent_reconciles{controller="c"} 8`, `controller_held_keys{controller="c"} 7`,
		`rest_client_rate_limiter_duration_seconds_bucket{host="api:6443",le="2"} 0`,
		`rest_client_rate_limiter_duration_seconds_sum{host="api:6443"} 3`,
		`controller_runtime_active_workers{controller="c"} 3`, `controller_source_events_total{controller="c"} 9`,
		`informer_objects{resource="pods"} 7`, `informer_events_total{resource="pods"} 8`,
		`informer_errors_total{resource="pods"} 3`,
		`informer_last_event_timestamp_seconds{resource="pods"} 12.5`,
		`events_total{result="sent"} 6`, `events_total{result="overflowed"} 1`, `events_queued 2`,
		`controller_reconcile_hung_total{controller="c"} 1`, `controller_reconcile_stale_total{controller="c"} 4`,
		`rest_client_requests_total{code="200",host="api:6443",method="GET"} 1`,
		`rest_client_requests_total{code="<error>",host="api:6443",method="POST"} 1`,
		`rest_client_request_duration_seconds_bucket{host="api:6443",verb="GET",le="0.25"} 0`,
		`rest_client_request_duration_seconds_bucket{host="api:6443",verb="GET",le="0.5"} 1`,
		`client_own_write_waits_total 3`, `client_own_write_wait_seconds_total 1.5`, `client_stale_reads_total 1`,
		`client_own_writes_pending{outcome="known"} 5`, `client_own_writes_pending{outcome="unknown"} 2`,
		`leader_election_master_status{name="kube"} 0`, `leader_election_slowpath_total{name="kube"} 3`)
	leading = true
	expect(t, scrape(t, r), `leader_election_master_status{name="kube"} 1`)
}

func TestTwoRegistriesAndARebuiltController(t *testing.T) {
	a, b := New(), New()
	a.Controller("c", func() reconcile.Stats { return reconcile.Stats{Done: 1} })
	a.Controller("c", func() reconcile.Stats { return reconcile.Stats{Done: 2} })
	b.Controller("c", func() reconcile.Stats { return reconcile.Stats{Done: 3} })
	expect(t, scrape(t, a), `controller_runtime_reconcile_total{controller="c",result="success"} 2`)
	expect(t, scrape(t, b), `controller_runtime_reconcile_total{controller="c",result="success"} 3`)
}
