// Command web is a web server for tests. It answers with its version, and its readiness can be switched:
//
//	GET  /       the version
//	GET  /ready  200 if it is ready
//	POST /ready  makes it ready
//	DELETE /ready  makes it unready
//	GET  /lookup/NAME  the addresses of a host, one a line
//
// It starts ready unless the environment variable UNREADY is set.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var ready atomic.Bool
	ready.Store(os.Getenv("UNREADY") == "")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, version) })
	mux.HandleFunc("POST /ready", func(http.ResponseWriter, *http.Request) { ready.Store(true) })
	mux.HandleFunc("DELETE /ready", func(http.ResponseWriter, *http.Request) { ready.Store(false) })
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /lookup/{name}", func(w http.ResponseWriter, r *http.Request) {
		addresses, err := net.DefaultResolver.LookupHost(r.Context(), r.PathValue("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, strings.Join(addresses, "\n"))
	})
	s := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1) // receives what ListenAndServe returns
	go func() { ended <- s.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// Requests in flight are answered.
	ending, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := s.Shutdown(ending)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
