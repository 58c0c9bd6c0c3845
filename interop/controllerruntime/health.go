package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	own "github.com/flyball-dev/flyball/client/events"
)

// AddHealthzCheck adds to the liveness checks.
func (m *Manager) AddHealthzCheck(name string, check healthz.Checker) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[name] = check
	return nil
}

// AddReadyzCheck adds to the readiness checks. The manager's own says in words what is missing.
func (m *Manager) AddReadyzCheck(name string, check healthz.Checker) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready[name] = check
	return nil
}

// serveHealth serves the checks until ctx is done.
func (m *Manager) serveHealth(ctx context.Context) error {
	listener, err := net.Listen("tcp", m.o.HealthProbeBindAddress)
	if err != nil {
		return fmt.Errorf("listen for health probes: %w", err)
	}
	mux := http.NewServeMux()
	serve := func(path, fallback string, checks func() map[string]healthz.Checker) {
		if path == "" {
			path = fallback
		}
		handler := http.StripPrefix(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m.mu.Lock()
			all := maps.Clone(checks())
			m.mu.Unlock()
			(&healthz.Handler{Checks: all}).ServeHTTP(w, r)
		}))
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler)
	}
	serve(m.o.LivenessEndpointName, "/healthz", func() map[string]healthz.Checker { return m.live })
	serve(m.o.ReadinessEndpointName, "/readyz", func() map[string]healthz.Checker {
		all := maps.Clone(m.ready)
		all["manager"] = func(*http.Request) error { return m.core.Ready() }
		return all
	})
	s := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 90 * time.Second,
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// eventRecorder is client-go's recorder over ours.
type eventRecorder struct{ own own.Recorder }

var _ record.EventRecorderLogger = eventRecorder{}

func (r eventRecorder) Event(obj runtime.Object, eventType, reason, message string) {
	r.own.Eventf(obj, eventType, reason, "%s", message)
}

func (r eventRecorder) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	r.own.Eventf(obj, eventType, reason, format, args...)
}

func (r eventRecorder) AnnotatedEventf(obj runtime.Object, _ map[string]string, eventType, reason, format string, args ...any) {
	r.own.Eventf(obj, eventType, reason, format, args...)
}

func (r eventRecorder) WithLogger(klog.Logger) record.EventRecorderLogger { return r }
