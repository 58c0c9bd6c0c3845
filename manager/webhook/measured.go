package webhook

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/webhook/internal/panics"
	"github.com/flyball-dev/flyball/manager/webhook/internal/review"
)

// measured returns hook with a logger that names its path, with metrics, and with an answer to panics.
func (s *Server) measured(path string, hook http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := klog.NewContext(r.Context(), klog.FromContext(r.Context()).WithValues("webhook", path))
		ctx = panics.With(ctx, func() {
			if m := s.options.Metrics; m != nil {
				m.WebhookPanic(path)
			}
		})
		done := func(int, time.Duration) {}
		if m := s.options.Metrics; m != nil {
			done = m.WebhookRequest(path)
		}
		s.count(path, 1)
		seen, began := &watched{ResponseWriter: w}, time.Now()
		defer func() {
			if v := recover(); v != nil {
				err := panics.Recovered(ctx, v)
				if seen.code == 0 {
					review.Refuse(seen, review.Failed(err))
				}
			}
			s.count(path, -1)
			done(seen.status(), time.Since(began))
		}()
		hook.ServeHTTP(seen, r.WithContext(ctx))
	})
}

func (s *Server) count(path string, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight[path] += change
}

// unknown answers requests for paths without a webhook. Options.WebhookMux answers them if it has a handler for the
// path. Otherwise the user of the operation sees the message, which should help to correct the configuration.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	if more := s.options.WebhookMux; more != nil {
		if _, pattern := more.Handler(r); pattern != "" {
			more.ServeHTTP(w, r)
			return
		}
	}
	known := "there is none yet"
	if paths := s.Registered(); len(paths) > 0 {
		known = "there are " + strings.Join(paths, ", ")
	}
	review.Refuse(w, review.NotFound(fmt.Errorf("there is no webhook at %s; %s", r.URL.Path, known)))
}

// watched is a ResponseWriter that remembers the status.
type watched struct {
	http.ResponseWriter
	code int // 0: nothing was written
}

func (w *watched) WriteHeader(code int) {
	w.code = cmp.Or(w.code, code)
	w.ResponseWriter.WriteHeader(code)
}

func (w *watched) Write(p []byte) (int, error) {
	w.code = cmp.Or(w.code, http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watched) status() int {
	if w.code == 0 {
		return http.StatusOK
	}
	return w.code
}
