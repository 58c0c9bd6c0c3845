package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	peerwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	peerconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/manager/webhook/conversion"
)

// NewWebhookServer returns Flyball's server of webhooks, for manager.Options.WebhookServer. It drains requests in
// flight for at most 5 s, reloads certificates, and the authorities of clients, with handshakes, speaks HTTP/1.1 only,
// and may start before there is a certificate: its StartedChecker says so. It reports to controller-runtime's metrics.
func NewWebhookServer(o peerwebhook.Options) peerwebhook.Server {
	measured := &webhookMetrics{
		total: existing(prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_requests_total",
			Help: "Total number of admission requests by HTTP status code.",
		}, []string{"webhook", "code"})),
		latency: existing(prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "controller_runtime_webhook_latency_seconds",
			Help: "Histogram of the latency of processing admission requests",
		}, []string{"webhook"})),
		inFlight: existing(prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "controller_runtime_webhook_requests_in_flight",
			Help: "Current number of admission requests being served.",
		}, []string{"webhook"})),
	}
	mux := o.WebhookMux
	if mux == nil {
		mux = http.NewServeMux()
	}
	return &webhookServer{mux: mux, Server: webhook.NewServer(webhook.Options{
		Host: o.Host, Port: o.Port, CertDir: o.CertDir, CertName: o.CertName, KeyName: o.KeyName,
		ClientCAName: o.ClientCAName, TLSOpts: o.TLSOpts, WebhookMux: mux, ListenAtOnce: true, Metrics: measured,
	})}
}

// existing returns the collector of controller-runtime's registry that is like c. Its packages register theirs when
// they are imported, and export none.
func existing[C prometheus.Collector](c C) C {
	known := prometheus.AlreadyRegisteredError{}
	if errors.As(metrics.Registry.Register(c), &known) {
		if theirs, ok := known.ExistingCollector.(C); ok {
			return theirs
		}
	}
	return c
}

// webhookServer implements controller-runtime's webhook.Server.
type webhookServer struct {
	*webhook.Server
	// mux has what was registered, and the handlers of Options.WebhookMux. Builders look there whether a path is taken.
	mux *http.ServeMux
}

// Register implements webhook.Server. It panics if the path is taken, as theirs does.
func (s *webhookServer) Register(path string, hook http.Handler) {
	if err := s.Server.Register(path, hook); err != nil {
		panic(err)
	}
	s.mux.Handle(path, hook)
}

// Start implements webhook.Server.
func (s *webhookServer) Start(ctx context.Context) error { return s.Run(ctx) }

// StartedChecker implements webhook.Server.
func (s *webhookServer) StartedChecker() healthz.Checker {
	return func(*http.Request) error { return s.Health() }
}

// WebhookMux implements webhook.Server.
func (s *webhookServer) WebhookMux() *http.ServeMux { return s.mux }

// webhookMetrics implements our webhook.Metrics with controller-runtime's metrics.
type webhookMetrics struct {
	total    *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
}

// WebhookRequest implements webhook.Metrics.
func (m *webhookMetrics) WebhookRequest(path string) func(code int, took time.Duration) {
	m.inFlight.WithLabelValues(path).Inc()
	return func(code int, took time.Duration) {
		m.inFlight.WithLabelValues(path).Dec()
		m.total.WithLabelValues(path, strconv.Itoa(code)).Inc()
		m.latency.WithLabelValues(path).Observe(took.Seconds())
	}
}

// WebhookPanic implements webhook.Metrics. Controller-runtime's handlers count their panics themselves.
func (*webhookMetrics) WebhookPanic(string) {}

// WebhookCertificates implements webhook.Metrics.
func (*webhookMetrics) WebhookCertificates(func() (total, failed int)) {}

// NewConversionHandler returns Flyball's conversion webhook in the place of conversion.NewWebhookHandler. Register it
// at /convert before a builder registers controller-runtime's:
//
//	mgr.GetWebhookServer().Register("/convert",
//		controllerruntime.NewConversionHandler(mgr.GetScheme(), mgr.GetConverterRegistry()))
//
// It converts the kinds that are in the scheme now, by their converter in the registry or else by the methods of their
// types. Errors name the object that they are about, metadata is copied before a conversion begins, and the context
// ends when the API server stops waiting.
func NewConversionHandler(scheme *runtime.Scheme, registry peerconversion.Registry) http.Handler {
	hook, known := conversion.New(scheme), map[schema.GroupKind]bool{}
	for kind := range scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal || known[kind.GroupKind()] {
			continue
		}
		known[kind.GroupKind()] = true
		_ = hook.Register(kind.GroupKind(), &converter{scheme, registry, kind}) // each kind once
	}
	return hook
}

// converter converts a kind by what the registry has for it at the time, or else by the methods of its types.
type converter struct {
	scheme   *runtime.Scheme
	registry peerconversion.Registry
	// kind is the kind in any version.
	kind schema.GroupVersionKind
}

// ConvertObject implements conversion.Converter.
func (c *converter) ConvertObject(ctx context.Context, src, dst runtime.Object) error {
	if registered, ok := c.registry.GetConverter(c.kind.GroupKind()); ok {
		return registered.ConvertObject(ctx, src, dst)
	}
	example, err := c.scheme.New(c.kind)
	if err != nil {
		return fmt.Errorf("make an object of %s: %w", c.kind, err)
	}
	byMethods, err := conversion.NewHubConverter(c.scheme, example)
	if err != nil {
		return err
	}
	return byMethods.ConvertObject(ctx, src, dst)
}
