package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// servers are the listeners of a manager, one for each address.
type servers struct {
	handlers map[string]*http.ServeMux // by address as configured
	tls      *tls.Config               // nil: plain HTTP
	// open opens a port: net.Listen, but in tests without a network.
	open func(network, address string) (net.Listener, error)

	mu        sync.Mutex
	listeners map[string]net.Listener // by address as configured; filled by listen
}

func newServers(m *Manager, config *rest.Config) (*servers, error) {
	s := &servers{handlers: map[string]*http.ServeMux{}, listeners: map[string]net.Listener{}, open: net.Listen}
	o := m.options
	guard := func(h http.Handler) http.Handler { return h }
	health := m.HealthHandler()
	if o.Serving.Review {
		reviews, err := newReviewer(config)
		if err != nil {
			return nil, err
		}
		guard = reviews.guard
		health = reviews.choose(health, m.healthHandler(briefly))
	}
	if mux := s.mux(o.HealthAddr); mux != nil {
		for _, path := range []string{"/healthz", "/livez", "/readyz", "/healthz/{name}"} {
			mux.Handle("GET "+path, health)
		}
	}
	if mux := s.mux(o.MetricsAddr); mux != nil {
		mux.Handle("GET /metrics", guard(o.Metrics))
	}
	if mux := s.mux(o.DebugAddr); mux != nil {
		handler := guard(m.debugHandler())
		mux.Handle("GET /debug/pprof/", handler)
		mux.Handle("GET /configz", handler)
	}
	if len(s.handlers) == 0 {
		return s, nil
	}
	var err error
	s.tls, err = o.Serving.tlsConfig()
	return s, err
}

// mux returns the handler of an address, nil when that is off.
func (s *servers) mux(addr string) *http.ServeMux {
	if addr == "" {
		return nil
	}
	if s.handlers[addr] == nil {
		s.handlers[addr] = http.NewServeMux()
	}
	return s.handlers[addr]
}

// listen opens all ports or none.
func (s *servers) listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for addr := range s.handlers {
		l, err := s.open("tcp", addr)
		if err != nil {
			for _, open := range s.listeners {
				_ = open.Close()
			}
			return fmt.Errorf("serve health and metrics: %w", err)
		}
		if s.tls != nil {
			l = tls.NewListener(l, s.tls)
		}
		s.listeners[addr] = l
	}
	return nil
}

// addr returns where an address as configured is really served: the port that ":0" became.
func (s *servers) addr(configured string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.listeners[configured]; l != nil {
		return l.Addr().String()
	}
	return ""
}

// Limits of a connection: probes and scrapes are small and quick.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 90 * time.Second
	maxHeaderBytes    = 16 << 10
	shutdownTimeout   = time.Second
)

// run serves until ctx ends or a listener breaks, then lets answers on their way be sent.
func (s *servers) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failures []error
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failures = append(failures, err)
		cancel()
	}
	for addr, handler := range s.handlers {
		server := &http.Server{
			Handler: handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
			IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: klog.NewStandardLogger("WARNING"),
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2: its streams are cheap to abuse
		}
		s.mu.Lock()
		listener := s.listeners[addr]
		s.mu.Unlock()
		klog.FromContext(ctx).Info("Serving health and metrics", "address", listener.Addr().String())
		wg.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				fail(fmt.Errorf("serve on %s: %w", addr, err))
			}
		})
		wg.Go(func() {
			<-ctx.Done()
			patience, enough := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
			defer enough()
			if err := server.Shutdown(patience); err != nil {
				_ = server.Close()
			}
		})
	}
	<-ctx.Done()
	wg.Wait()
	return errors.Join(failures...)
}

// HealthAddr is where health is served, with the port that ":0" became; empty before Run and when it is off.
func (m *Manager) HealthAddr() string { return m.servers.addr(m.options.HealthAddr) }

// MetricsAddr is where metrics are served, with the port that ":0" became; empty before Run and when it is off.
func (m *Manager) MetricsAddr() string { return m.servers.addr(m.options.MetricsAddr) }

// DebugAddr is where profiles and the configuration are served, with the port that ":0" became; empty before Run and when it
// is off.
func (m *Manager) DebugAddr() string { return m.servers.addr(m.options.DebugAddr) }
