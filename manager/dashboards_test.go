package manager_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/reconcile"
)

// dashboards are the series that dashboards and alerts for controller-runtime query, each with the labels that identify
// it.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller/metrics, pkg/metrics and pkg/internal/metrics.
var dashboards = []string{
	`controller_runtime_active_workers{controller="namespace"} 0`,
	`controller_runtime_max_concurrent_reconciles{controller="namespace"} 3`,
	`controller_runtime_reconcile_errors_total{controller="namespace"} 3`,
	`controller_runtime_reconcile_panics_total{controller="namespace"} 1`,
	`controller_runtime_reconcile_time_seconds_bucket{controller="namespace",le="0.005"} `,
	`controller_runtime_reconcile_time_seconds_count{controller="namespace"} `,
	`controller_runtime_reconcile_time_seconds_sum{controller="namespace"} `,
	`controller_runtime_reconcile_timeouts_total{controller="namespace"} 1`,
	`controller_runtime_reconcile_total{controller="namespace",result="error"} 3`,
	`controller_runtime_reconcile_total{controller="namespace",result="requeue"} 0`,
	`controller_runtime_reconcile_total{controller="namespace",result="requeue_after"} 1`,
	`controller_runtime_reconcile_total{controller="namespace",result="success"} `,
	`controller_runtime_terminal_reconcile_errors_total{controller="namespace"} 1`,
	`go_goroutines `,
	`leader_election_master_status{name="flyball-manager"} 1`,
	`process_cpu_seconds_total `,
	`rest_client_rate_limiter_duration_seconds_bucket{host="localapi",le="0.005"} `,
	`rest_client_request_duration_seconds_bucket{host="localapi",verb="GET",le="0.005"} `,
	`rest_client_requests_total{code="200",host="localapi",method="GET"} `,
	`workqueue_adds_total{name="namespace"} `,
	`workqueue_depth{name="namespace"} 0`,
	`workqueue_longest_running_processor_seconds{name="namespace"} 0`,
	`workqueue_queue_duration_seconds_bucket{name="namespace",le="+Inf"} `,
	`workqueue_retries_total{name="namespace"} 2`,
	`workqueue_unfinished_work_seconds{name="namespace"} 0`,
	`workqueue_work_duration_seconds_bucket{name="namespace",le="+Inf"} `,
}

// TestMetricsOfDashboards checks that a process serves all these series if it leads and its controller has met every
// case.
func TestMetricsOfDashboards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o, registry := elected(), metrics.New()
		o.Metrics = registry
		config := w.server.RESTConfig()
		config.QPS = 100
		m, err := manager.New(config, o)
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		options := reconcile.Options[reconcile.Request]{Workers: 3, Timeout: 10 * time.Second}
		err = builder.ControllerManagedBy(m).For(&corev1.Namespace{}).WithOptions(options).Complete(
			reconcile.Func[reconcile.Request](func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				if r.Name != "default" {
					return reconcile.Result{}, nil
				}
				switch calls++; calls {
				case 1:
					return reconcile.Result{RequeueAfter: time.Second}, nil
				case 2:
					panic("on purpose")
				case 3:
					<-ctx.Done()
					return reconcile.Result{}, ctx.Err()
				case 4:
					return reconcile.Result{}, reconcile.Terminal(errors.New("on purpose"))
				}
				return reconcile.Result{}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		time.Sleep(time.Minute)
		answer := httptest.NewRecorder()
		registry.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		served := "\n" + answer.Body.String()
		for _, series := range dashboards {
			if whole := "\n" + series; !strings.Contains(served, whole) {
				t.Errorf("not served: %s", series)
			}
		}
		if t.Failed() {
			t.Log(served)
		}
		l.mustEnd()
	})
}
