package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
)

// NewToken returns a new random bearer token.
func NewToken() string { return rand.Text() }

// Tokens returns the users of a server: the administrator, who has the token.
func Tokens(token string) map[string]auth.User { return map[string]auth.User{token: auth.Admin()} }

// CheckHosts validates host names of the server.
func CheckHosts(names []string) error {
	for _, name := range names {
		if wrong := validation.NameIsDNSSubdomain(name, false); len(wrong) > 0 {
			return fmt.Errorf("%q: it must be a name without scheme and port: %s", name, wrong[0])
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
}

// Open opens the port. Clients may use its address, localhost and names. The caller must call Serve or Close.
func Open(ctx context.Context, addr, token string, names []string) (*Socket, error) {
	l, err := localapi.Listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	certificate, err := selfSigned(l.Addr().(*net.TCPAddr).IP, append([]string{"localhost"}, names...))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a certificate: %w", err), l.Close())
	}
	return &Socket{listener: l, token: token, certificate: certificate}, nil
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

// selfSigned returns a self-signed certificate.
func selfSigned(ip net.IP, names []string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "flyball"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(1, 0, 0),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{ip}, DNSNames: names,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}

// authority returns the certificate in PEM, for clients.
func (s *Socket) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Certificate[0]})
}
