package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/webhook/internal/panics"
	"github.com/flyball-dev/flyball/manager/webhook/internal/review"
)

// Health returns why this process cannot serve its webhooks: it does not listen yet, or has no valid certificate. It
// returns nil if there are no webhooks, unless Options.ListenAtOnce is set.
func (s *Server) Health() error {
	idle := len(s.Registered()) == 0 && !s.options.ListenAtOnce
	if idle || s.options.Port < 0 && s.options.Listener == nil {
		return nil
	}
	if s.Addr() == "" {
		return errors.New("not served yet")
	}
	leaf, err := s.certificate()
	if err != nil {
		return fmt.Errorf("no certificate yet: %w", err)
	}
	now := time.Now()
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate ended %v ago%s", brief(now.Sub(leaf.NotAfter)), s.because())
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate begins only in %v: is this machine's clock right?",
			brief(leaf.NotBefore.Sub(now)))
	}
	return nil
}

// Note returns what an operator may want to know although the webhooks are served: that the certificate will end soon,
// or that it or the authorities of clients cannot be reloaded.
func (s *Server) Note() string {
	if s.Addr() == "" {
		return ""
	}
	leaf, err := s.certificate()
	if err != nil {
		return ""
	}
	left, lifetime := time.Until(leaf.NotAfter), leaf.NotAfter.Sub(leaf.NotBefore)
	switch because := s.because(); {
	case left < lifetime/unrenewed:
		return fmt.Sprintf("the certificate ends in %v and is not renewed%s", brief(left), because)
	case because != "":
		return "serving the last good certificate" + because
	}
	if s.authorities != nil {
		if err := s.authorities.Err(); err != nil {
			return "using the last good file: " + err.Error()
		}
	}
	return ""
}

// unrenewed is the fraction of a certificate's lifetime before its end in which it should have been renewed.
// cert-manager renews a third of the lifetime before the end.
const unrenewed = 6

// because returns why the certificate cannot be reloaded, as the end of a sentence.
func (s *Server) because() string {
	if s.files == nil {
		return ""
	}
	if err := s.files.Err(); err != nil {
		return ": " + err.Error()
	}
	return ""
}

// certificate returns the certificate that clients see.
func (s *Server) certificate() (*x509.Certificate, error) {
	if s.tls.GetCertificate == nil {
		return leafOf(&s.tls.Certificates[0])
	}
	pair, err := s.tls.GetCertificate(&tls.ClientHelloInfo{})
	switch {
	case err != nil:
		return nil, err
	case pair == nil:
		return nil, errors.New("GetCertificate returned none")
	}
	return leafOf(pair)
}

func leafOf(pair *tls.Certificate) (*x509.Certificate, error) {
	if pair.Leaf != nil {
		return pair.Leaf, nil
	}
	if len(pair.Certificate) == 0 {
		return nil, errors.New("the certificate is empty")
	}
	return x509.ParseCertificate(pair.Certificate[0])
}

// brief returns a duration in its largest unit or two: 2h, 3m, 45s.
func brief(d time.Duration) time.Duration {
	switch {
	case d > time.Hour:
		return d.Round(time.Hour)
	case d > time.Minute:
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}

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

// unknown answers requests for paths without a webhook, by Options.WebhookMux if that has a handler. The message
// reaches the user whose operation it is, who can tell the author of the configuration.
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
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *watched) Write(p []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
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
