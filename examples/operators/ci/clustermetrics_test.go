package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ephemeralcluster"
)

// gather returns the counts, and the number and sum of each histogram, one a line.
func gather(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		for _, m := range f.Metric {
			if h := m.Histogram; h != nil {
				lines = append(lines,
					fmt.Sprintf("%s %d %gs", strings.TrimPrefix(f.GetName(), "ephemeralcluster_"), h.GetSampleCount(),
						h.GetSampleSum()))
				continue
			}
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetValue())
			}
			lines = append(lines, fmt.Sprintf("count %s %g", strings.Join(labels, "/"), m.Gauge.GetValue()))
		}
	}
	return strings.Join(lines, "\n")
}

// Every round counts anew: who left is not reported any more. A process that has stopped reports nothing, and what
// took how long is measured once.
//
// Source: TestStart of pkg/controller/ephemeralcluster/metrics_test.go of openshift/ci-tools, for the rounds.
func TestMetrics(t *testing.T) {
	inClusters(t, func(w *ecWorld) {
		m := ephemeralcluster.NewMetrics()
		w.o.Metrics = m
		want := func(want string) {
			t.Helper()
			if got := gather(t, m); got != want {
				t.Errorf("metrics\n%s\nwant\n%s", got, want)
			}
		}
		stop := w.start()
		w.Create(Hub, w.request(), w.request(func(ec *api.EphemeralCluster) { ec.Name = "second" }),
			w.request(func(ec *api.EphemeralCluster) {
				ec.Name, ec.Annotations, ec.Spec.CIOperator.Test.ClusterProfile = "third", nil, "free"
			}))
		time.Sleep(90 * time.Second)
		want(`count aws/k1/team-a/Provisioning/ipi-aws 2
count free///Provisioning/ipi-aws 1
deprovisioning_duration_seconds 0 0s
provisioning_duration_seconds 0 0s`)
		w.runs()
		w.provides(ephemeralcluster.Credentials, "kubeconfig")
		third := w.request(func(ec *api.EphemeralCluster) { ec.Name = "third" })
		w.Must(w.Client.Delete(w.Ctx, third))
		time.Sleep(100 * time.Second)
		want(`count aws/k1/team-a/Provisioning/ipi-aws 1
count aws/k1/team-a/Ready/ipi-aws 1
deprovisioning_duration_seconds 0 0s
provisioning_duration_seconds 1 120s`)
		w.change(func(ec *api.EphemeralCluster) { ec.Spec.TearDownCluster = true })
		time.Sleep(10 * time.Minute)
		w.finish(api.SuccessState)
		time.Sleep(time.Minute)
		w.Must(
			client.IgnoreNotFound(
				w.Client.Delete(w.Ctx,
					w.request(func(ec *api.EphemeralCluster) { ec.Name = "second" })),
			),
		)
		time.Sleep(2 * time.Minute)
		want(`count aws/k1/team-a/Deprovisioned/ipi-aws 1
deprovisioning_duration_seconds 1 600s
provisioning_duration_seconds 1 120s`)
		stop()
		want(`deprovisioning_duration_seconds 1 600s
provisioning_duration_seconds 1 120s`)
	})
}
