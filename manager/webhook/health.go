package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
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

// A certificate of which less than 1/unrenewed of its lifetime is left should have been renewed. cert-manager renews
// when a third is left.
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
