package serve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/flyball-dev/flyball/internal/certs"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
)

// NewToken returns a new random bearer token.
func NewToken() string { return rand.Text() }

// Tokens returns the users of a server: the administrator, who has the token.
func Tokens(token string) map[string]auth.User { return map[string]auth.User{token: auth.Admin()} }

// CheckLoopback validates the address that a flag gives for a page on this machine.
func CheckLoopback(flag, addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s %s: it must be a loopback address", flag, addr)
	}
	return nil
}

// CheckHosts validates host names of the server.
func CheckHosts(names []string) error {
	for _, name := range names {
		if wrong := validation.NameIsDNSSubdomain(name, false); len(wrong) > 0 {
			return fmt.Errorf("%q: it must be a name without scheme and port: %s", name, wrong[0])
		}
	}
	return nil
}

// CheckWebhookServices validates the addresses of webhooks by Service.
func CheckWebhookServices(services map[string]string) error {
	for service, address := range services {
		namespace, name, ok := strings.Cut(service, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("%q: it must be NAMESPACE/NAME of a Service", service)
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("%q: it must be HOST:PORT: %w", address, err)
		}
	}
	return nil
}

// Socket is a loopback port that serves an API to every client that has the kubeconfig. It uses TLS, because clients
// send the token of a kubeconfig only over TLS.
type Socket struct {
	listener    net.Listener
	token       string
	certificate tls.Certificate
	authority   []byte // for clients, in PEM
}

// Open opens the port. Clients may use its address, localhost and names. The caller must call Serve or Close.
func Open(ctx context.Context, addr, token string, names []string) (*Socket, error) {
	l, err := localapi.Listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	s := &Socket{listener: l, token: token}
	authority, err := certs.NewAuthority(365)
	if err == nil {
		s.authority = authority.PEM()
		s.certificate, err = authority.Server(l.Addr().(*net.TCPAddr).IP, names...)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a certificate: %w", err), l.Close())
	}
	return s, nil
}

// Addr returns the address on which the socket listens.
func (s *Socket) Addr() string { return s.listener.Addr().String() }

// Close closes the port.
func (s *Socket) Close() error { return s.listener.Close() }

// Serve serves the API until ctx ends.
func (s *Socket) Serve(ctx context.Context, server *localapi.Server) error {
	return server.ServeTLS(ctx, s.listener,
		&tls.Config{Certificates: []tls.Certificate{s.certificate}, MinVersion: tls.VersionTLS12})
}
