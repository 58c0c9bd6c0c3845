package serving

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/connections"
)

// Server serves one handler on each of its addresses.
//
// Concurrency: Mux must be called for each address before Listen, by one goroutine. After that, Mux and the other
// methods may be called from any goroutine.
type Server struct {
	handlers map[string]*http.ServeMux // by address as configured
	guards   map[string]func(http.Handler) http.Handler
	serves   map[string][]string // names of what is served there, for the log
	tls      *tls.Config         // nil: plain HTTP
	// Open opens a port. It is net.Listen, except in tests without a network.
	Open func(network, address string) (net.Listener, error)

	mu        sync.Mutex
	listeners map[string]net.Listener // by address as configured; filled by Listen
}

// New returns a server without addresses. config is nil for plain HTTP.
func New(config *tls.Config) *Server {
	return &Server{
		Open: net.Listen, tls: config, handlers: map[string]*http.ServeMux{},
		guards: map[string]func(http.Handler) http.Handler{},
		serves: map[string][]string{}, listeners: map[string]net.Listener{},
	}
}

// Mux returns the handler of an address, which the first call creates. It returns nil for an empty address. what
// describes the content of the address in the log.
func (s *Server) Mux(addr string, what ...string) *http.ServeMux {
	if addr == "" {
		return nil
	}
	if len(what) > 0 {
		s.serves[addr] = append(s.serves[addr], what...)
	}
	if s.handlers[addr] == nil {
		s.handlers[addr] = http.NewServeMux()
	}
	return s.handlers[addr]
}

// Guard puts a guard in front of all that an address serves.
func (s *Server) Guard(addr string, guard func(http.Handler) http.Handler) { s.guards[addr] = guard }

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
			return fmt.Errorf("serve %s: %w", strings.Join(s.serves[addr], " and "), err)
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

// Limits of a connection. Responses are small and quick, except profiles.
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
	failures := make([]error, 0, len(s.handlers)) // Each goroutine writes one element.
	for addr, mux := range s.handlers {
		handler := http.Handler(mux)
		if guard := s.guards[addr]; guard != nil {
			handler = guard(mux)
		}
		s.mu.Lock()
		listener := s.listeners[addr]
		s.mu.Unlock()
		klog.FromContext(ctx).Info("Serving", "what", s.serves[addr], "address", listener.Addr().String())
		failures = append(failures, nil)
		failure := &failures[len(failures)-1]
		wg.Go(func() {
			if err := Serve(ctx, listener, handler, shutdownTimeout); err != nil {
				cancel()
				*failure = fmt.Errorf("serve on %s: %w", addr, err)
			}
		})
	}
	<-ctx.Done()
	wg.Wait()
	return errors.Join(failures...)
}

// Serve serves a handler until ctx ends or the listener fails. It then waits for responses that are being sent, for at
// most drain. Requests have the values of ctx, but do not end with it.
func Serve(ctx context.Context, l net.Listener, handler http.Handler, drain time.Duration) error {
	values := context.WithoutCancel(ctx)
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout,
		IdleTimeout:  idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: klog.NewStandardLogger("WARNING"),
		BaseContext: func(net.Listener) context.Context { return values },
		ConnState:   connections.New(connections.Share(8)).Note, // there may be four such servers, and clients
		// No HTTP/2: its streams are cheap to abuse.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		<-ctx.Done()
		patience, enough := context.WithTimeout(values, drain)
		defer enough()
		if err := server.Shutdown(patience); err != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	cancel()
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Answer sends paragraphs as plain text.
func Answer(w http.ResponseWriter, code int, paragraphs ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, strings.Join(paragraphs, "\n"))
}

// Debug returns a handler that serves profiles below /debug/pprof/, and configuration as JSON at /configz.
func Debug(configuration any) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /configz", func(w http.ResponseWriter, _ *http.Request) {
		text, err := json.MarshalIndent(configuration, "", "  ")
		if err != nil {
			Answer(w, http.StatusInternalServerError, "the configuration cannot be shown: "+err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(text, '\n'))
	})
	return mux
}

// reloaded is a value from files that another process replaces from time to time.
type reloaded[T any] struct {
	names []string
	// what names the value in the log. load loads the value.
	what string
	load func() (*T, error)

	mu sync.Mutex
	// value is the last value that was loaded without an error, from files. err is the error of the last attempt to
	// load; nil if value is current.
	value     *T
	files     []os.FileInfo
	err       error
	checkedAt time.Time
	loads     Loads
}

// Loads counts how often files were loaded.
type Loads struct {
	Total, Failed int
}

// checkInterval is the minimum time between two checks of the files.
const checkInterval = time.Second

// get returns the value of the files. It reloads them if they have changed, and returns the last good value while they
// cannot be used.
//
// Errors: there was no good value yet.
func (r *reloaded[T]) get() (*T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reloadLocked()
	if r.value == nil {
		return nil, r.err
	}
	return r.value, nil
}

// Err returns why the current files cannot be used. An earlier good value is still used.
func (r *reloaded[T]) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reloadLocked()
	return r.err
}

// Loads returns how often the files were loaded.
func (r *reloaded[T]) Loads() Loads {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.loads
}

// reloadLocked loads the files if they have changed since value was loaded. In the volume of a Secret, the same path
// leads to another file after an update, because a symbolic link is replaced.
func (r *reloaded[T]) reloadLocked() {
	if !r.checkedAt.IsZero() && time.Since(r.checkedAt) < checkInterval {
		return
	}
	r.checkedAt = time.Now()
	now := make([]os.FileInfo, len(r.names))
	for i, name := range r.names {
		now[i], _ = os.Stat(name) // load reports the error
	}
	if r.value != nil && slices.EqualFunc(now, r.files, same) {
		r.err = nil
		return
	}
	r.loads.Total++
	value, err := r.load()
	if err == nil {
		r.value, r.files, r.err = value, now, nil
		return
	}
	r.loads.Failed++
	if r.value != nil && (r.err == nil || r.err.Error() != err.Error()) {
		klog.Background().Error(err, "Failed to reload files, using what was in them before", "files", r.names,
			"what", r.what)
	}
	r.err = err
}

// same reports whether a file is unchanged.
func same(now, before os.FileInfo) bool {
	return now != nil && before != nil && os.SameFile(now, before) && now.Size() == before.Size() &&
		now.ModTime().Equal(before.ModTime())
}
