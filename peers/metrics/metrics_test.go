package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	peer "sigs.k8s.io/controller-runtime"
	peermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	peerserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/metrics"
)

// absent are the metrics that controller-runtime serves and we do not; docs/divergence.md says why.
var absent = []string{
	"controller_runtime_client_consistency_wait_duration_seconds",
	"rest_client_dns_resolution_duration_seconds", "rest_client_request_retries_total",
	"rest_client_request_size_bytes", "rest_client_response_size_bytes",
}

// unlabelled are the labels that we do not have, by the metric's name up to its last character.
var unlabelled = map[string][]string{
	"workqueue_*": {"controller", "priority"},
	"rest_client_rate_limiter_duration_seconds": {"verb"},
}

// TestNamesOfMetrics: a controller that has succeeded, failed and asked to be repeated in a process that leads is run
// by controller-runtime and by us. What the one shows the other does, under the same name, of the same type, with the
// same labels.
func TestNamesOfMetrics(t *testing.T) {
	peer.SetLogger(klog.Logger{})
	peermetrics.RegisterRESTClientMetrics(
		peermetrics.MetricRequestLatency, peermetrics.MetricDNSResolutionLatency, peermetrics.MetricRequestSize,
		peermetrics.MetricResponseSize, peermetrics.MetricRateLimiterLatency, peermetrics.MetricRequestRetry)
	theirs, ours := familiesOfPeer(t), familiesOfOurs(t)
	text, err := os.ReadFile("../../docs/divergence.md")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for name, their := range theirs {
		our, have := ours[name]
		switch {
		case strings.HasPrefix(name, "go_"): // They serve all of the runtime's, we the well-known ones.
		case slices.Contains(absent, name):
			if have || !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("%s: is it absent (served: %v), and does divergence.md say so?", name, have)
			}
		case !have:
			t.Errorf("%s: not served", name)
		default:
			compared++
			if our.GetType() != their.GetType() {
				t.Errorf("%s is a %v, theirs a %v", name, our.GetType(), their.GetType())
			}
			if got, want := labelsOf(our), without(labelsOf(their), name); !slices.Equal(got, want) {
				t.Errorf("%s has the labels %q, want %q", name, got, want)
			}
		}
	}
	if compared < 20 {
		t.Errorf("only %d metrics were compared", compared)
	}
	results := map[string]bool{}
	for _, m := range ours["controller_runtime_reconcile_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			results[l.GetValue()] = true
		}
	}
	for _, m := range theirs["controller_runtime_reconcile_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "result" && !results[l.GetValue()] {
				t.Errorf("no result is called %s", l.GetValue())
			}
		}
	}
}

func labelsOf(f *dto.MetricFamily) (names []string) {
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if !slices.Contains(names, l.GetName()) {
				names = append(names, l.GetName())
			}
		}
	}
	slices.Sort(names)
	return names
}

func without(labels []string, metric string) []string {
	return slices.DeleteFunc(labels, func(label string) bool {
		for pattern, missing := range unlabelled {
			prefix, all := strings.CutSuffix(pattern, "*")
			if (metric == pattern || all && strings.HasPrefix(metric, prefix)) && slices.Contains(missing, label) {
				return true
			}
		}
		return false
	})
}

// answers are the results of the first reconciles.
func answers(call int) (requeue bool, err error) {
	switch call {
	case 1:
		return true, nil
	case 2:
		return false, errors.New("on purpose")
	}
	return false, nil
}

func serve(t *testing.T) *rest.Config {
	t.Helper()
	config := localapi.NewTest(t).RESTConfig()
	config.QPS, config.Burst = 50, 100
	return config
}

func familiesOfPeer(t *testing.T) map[string]*dto.MetricFamily {
	m, err := peer.NewManager(serve(t), peer.Options{
		LeaderElection: true, LeaderElectionID: "metrics", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       peerserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	calls := 0
	err = peer.NewControllerManagedBy(m).For(&corev1.Namespace{}).Complete(peerReconciler(func() (peer.Result, error) {
		calls++
		if calls == 4 {
			stop()
		}
		requeue, err := answers(calls)
		if requeue {
			return peer.Result{RequeueAfter: 1}, nil
		}
		return peer.Result{}, err
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(ctx); err != nil {
		t.Fatal(err)
	}
	all, err := peermetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*dto.MetricFamily{}
	for _, f := range all {
		found[f.GetName()] = f
	}
	return found
}

type peerReconciler func() (peer.Result, error)

func (f peerReconciler) Reconcile(context.Context, peer.Request) (peer.Result, error) { return f() }

func familiesOfOurs(t *testing.T) map[string]*dto.MetricFamily {
	registry := metrics.New()
	m, err := ctrl.NewManager(serve(t), ctrl.Options{
		Metrics:        registry,
		LeaderElection: manager.LeaderElection{Enabled: true, Namespace: "default", Name: "metrics"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	calls := 0
	err = ctrl.NewControllerManagedBy(m).For(
		&corev1.Namespace{},
	).Complete(ctrl.ReconcilerFunc(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		calls++
		if calls == 4 {
			stop()
		}
		requeue, err := answers(calls)
		if requeue {
			return ctrl.Result{RequeueAfter: 1}, nil
		}
		return ctrl.Result{}, err
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	registry.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(fmt.Errorf("what is served: %w", err))
	}
	return found
}
