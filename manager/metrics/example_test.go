package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/workqueue"
)

func ExampleNew() {
	registry := metrics.New()
	queue := workqueue.New(workqueue.Options[string]{Name: "deployment", Metrics: registry})
	defer queue.ShutDown()
	queue.Add("default/web")
	queue.Add("default/web") // the same key: one add

	w := httptest.NewRecorder()
	registry.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "workqueue_adds_total") || strings.HasPrefix(line, "workqueue_depth") {
			fmt.Print(line)
		}
	}
	// Output:
	// workqueue_adds_total{name="deployment"} 1
	// workqueue_depth{name="deployment"} 1
}
