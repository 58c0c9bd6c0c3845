package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/flyball-dev/flyball/workqueue"
	"github.com/flyball-dev/flyball/workqueue/metrics"
)

// gather returns the value of each metric of the queue named q; of a histogram its sum.
func gather(t *testing.T, p *metrics.Provider) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(p); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			values[strings.TrimPrefix(family.GetName(), "workqueue_")] = value(m)
		}
	}
	return values
}

func value(m *dto.Metric) float64 {
	switch {
	case m.Histogram != nil:
		return m.Histogram.GetSampleSum()
	case m.Counter != nil:
		return m.Counter.GetValue()
	default:
		return m.Gauge.GetValue()
	}
}

func TestMetricsOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := metrics.New()
		q := workqueue.New(workqueue.Options[string]{Name: "q", Metrics: provider})
		defer q.ShutDown()
		for _, key := range []string{"a", "a", "b", "c"} {
			q.Add(key)
		}
		time.Sleep(2 * time.Second)
		for range 2 {
			if _, err := q.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		q.AddRateLimited("a")
		q.AddAfter("later", time.Hour) // no retry
		time.Sleep(5 * time.Second)
		q.Done("a")
		want := map[string]float64{
			"depth": 2, "adds_total": 4, "retries_total": 1, "queue_duration_seconds": 4, "work_duration_seconds": 5,
			"unfinished_work_seconds": 5, "longest_running_processor_seconds": 5,
			"delayed": 1, "processing": 1,
		}
		for name, got := range gather(t, provider) {
			if got != want[name] {
				t.Errorf("%s: got %v, want %v", name, got, want[name])
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("not shown: %v", want)
		}
	})
}

func TestQueueOfTheSameNameReplacesTheFirst(t *testing.T) {
	provider := metrics.New()
	first := workqueue.New(workqueue.Options[string]{Name: "q", Metrics: provider})
	first.Add("a")
	first.ShutDown()
	workqueue.New(workqueue.Options[string]{Name: "q", Metrics: provider})
	if got := gather(t, provider)["depth"]; got != 0 {
		t.Errorf("depth: got %v, want the second queue's", got)
	}
}

func ExampleNew() {
	provider := metrics.New()
	registry := prometheus.NewRegistry()
	registry.MustRegister(provider)
	q := workqueue.New(workqueue.Options[string]{Name: "replicaset", Metrics: provider})
	q.Add("default/web")

	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		fmt.Println(family.GetName())
	}
	// Output:
	// workqueue_adds_total
	// workqueue_delayed
	// workqueue_depth
	// workqueue_longest_running_processor_seconds
	// workqueue_processing
	// workqueue_queue_duration_seconds
	// workqueue_retries_total
	// workqueue_unfinished_work_seconds
	// workqueue_work_duration_seconds
}
