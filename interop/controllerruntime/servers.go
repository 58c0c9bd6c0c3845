package controllerruntime

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"net/url"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	ours "github.com/flyball-dev/flyball/manager/webhook"
)

// AddHealthzCheck adds a liveness check.
func (m *Manager) AddHealthzCheck(name string, check healthz.Checker) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[name] = check
	return nil
}

// AddReadyzCheck adds a readiness check. The manager's own check lists what is missing.
func (m *Manager) AddReadyzCheck(name string, check healthz.Checker) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready[name] = check
	return nil
}

// makeServers makes the servers of metrics, health and profiles, and opens the ports of the last two.
func (m *Manager) makeServers() error {
	var err error
	if m.metrics, err = server.NewServer(m.o.Metrics, m.config, m.http); err != nil {
		return err
	}
	if m.metrics != nil {
		if err := m.first.add(m.metrics, nil); err != nil {
			return err
		}
	}
	health, err := m.serve("health probe", m.o.HealthProbeBindAddress, m.health())
	if err != nil {
		return err
	}
	profiles := http.NewServeMux()
	profiles.HandleFunc("/debug/pprof/", pprof.Index)
	profiles.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	profiles.HandleFunc("/debug/pprof/profile", pprof.Profile)
	profiles.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	profiles.HandleFunc("/debug/pprof/trace", pprof.Trace)
	if _, err := m.serve("pprof", m.o.PprofBindAddress, profiles); err != nil {
		if health != nil {
			_ = health.Close()
		}
		return err
	}
	return nil
}

// serve opens a port at once, and serves it as long as the manager runs. It returns nil without an address.
func (m *Manager) serve(name, address string, handler http.Handler) (net.Listener, error) {
	if address == "" || address == "0" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen at %s for the %s server: %w", address, name, err)
	}
	return listener,
		m.first.add(&manager.Server{
			Name: name, Listener: listener, ShutdownTimeout: new(shutdownTimeout),
			Server: &http.Server{
				Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second,
				WriteTimeout: 2 * time.Minute, IdleTimeout: 90 * time.Second,
			},
		}, nil)
}

// shutdownTimeout is how long a response on its way may take after everything else has ended.
const shutdownTimeout = time.Second

// health serves the checks.
func (m *Manager) health() http.Handler {
	mux := http.NewServeMux()
	serve := func(path, fallback string, checks func() map[string]healthz.Checker) {
		path = cmp.Or(path, fallback)
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
	return mux
}

// GetWebhookServer returns the server of webhooks, and makes the manager run it.
func (m *Manager) GetWebhookServer() webhook.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.webhooksAdded {
		m.webhooksAdded = true
		if err := m.first.add(m.o.WebhookServer, nil); err != nil {
			m.o.Logger.Error(err, "Webhooks are not served")
		}
	}
	return m.o.WebhookServer
}

// serveConversion notes whether a conversion webhook was registered. It is called before the server of webhooks runs:
// controller-runtime's must not be asked for its handlers while it starts.
func (m *Manager) serveConversion() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.webhooksAdded {
		return
	}
	if mux := m.o.WebhookServer.WebhookMux(); mux != nil { // nil before the first webhook
		_, pattern := mux.Handler(&http.Request{URL: &url.URL{Path: ours.ConvertPath}})
		m.converts.Store(pattern == ours.ConvertPath)
	}
}

// AddMetricsServerExtraHandler adds a handler to the server of metrics. If metrics are not served, it only logs that.
func (m *Manager) AddMetricsServerExtraHandler(path string, handler http.Handler) error {
	switch {
	case m.started.Load():
		return errors.New("unable to add new metrics handler because metrics endpoint has already been created")
	case m.metrics == nil:
		m.o.Logger.Info("Metrics are not served, so the extra handler is not either", "path", path)
		return nil
	}
	return m.metrics.AddExtraHandler(path, handler)
}
