package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Server serves one handler on each of its addresses.
//
// Concurrency: Mux must be called for each address before Listen, by one goroutine. After that, Mux and the other
// methods may be called from any goroutine.
type Server struct {
	handlers map[string]*http.ServeMux // by address as configured
	tls      *tls.Config               // nil: plain HTTP
	// Open opens a port. It is net.Listen, except in tests without a network.
	Open func(network, address string) (net.Listener, error)

	mu        sync.Mutex
	listeners map[string]net.Listener // by address as configured; filled by Listen
}

// New returns a server without addresses. config is nil for plain HTTP.
func New(config *tls.Config) *Server {
	return &Server{
		Open: net.Listen, tls: config, handlers: map[string]*http.ServeMux{},
		listeners: map[string]net.Listener{},
	}
}

// Mux returns the handler of an address, which the first call creates. It returns nil for an empty address.
func (s *Server) Mux(addr string) *http.ServeMux {
	if addr == "" {
		return nil
	}
	if s.handlers[addr] == nil {
		s.handlers[addr] = http.NewServeMux()
	}
	return s.handlers[addr]
}

// Listen opens all ports, or none if one cannot be opened.
func (s *Server) Listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for addr := range s.handlers {
		l, err := s.Open("tcp", addr)
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

// Addr returns the actual address for a configured one, with the actual port for ":0". It is empty before Listen, and
// for an address without a handler.
func (s *Server) Addr(configured string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.listeners[configured]; l != nil {
		return l.Addr().String()
	}
	return ""
}

// Limits of a connection. Probes and scrapes are small and quick.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 90 * time.Second
	maxHeaderBytes    = 16 << 10
	shutdownTimeout   = time.Second
)

// Run serves until ctx ends or a listener fails. It then waits a second for responses that are being sent.
func (s *Server) Run(ctx context.Context) error {
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
			Handler: handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
			WriteTimeout: writeTimeout,
			IdleTimeout:  idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: klog.NewStandardLogger("WARNING"),
			// No HTTP/2: its streams are cheap to abuse.
			TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
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

// Answer sends paragraphs as plain text.
func Answer(w http.ResponseWriter, code int, paragraphs ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, strings.Join(paragraphs, "\n"))
}
