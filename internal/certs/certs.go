// Package certs makes the certificates of servers and their clients.
package certs

import (
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
)

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	lifetime    time.Duration // of what it signs
}

// NewAuthority makes an authority. Its own certificate and those that it signs are valid for this many days.
func NewAuthority(days int) (*Authority, error) {
	return Named("flyball-ca", time.Duration(days)*24*time.Hour)
}

// Named makes an authority with a common name. Its own certificate and those that it signs are valid this long.
func Named(name string, lifetime time.Duration) (*Authority, error) {
	a := &Authority{lifetime: lifetime}
	signed, err := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	})
	if err != nil {
		return nil, err
	}
	a.key = signed.PrivateKey.(*ecdsa.PrivateKey)
	a.certificate, err = x509.ParseCertificate(signed.Certificate[0])
	return a, err
}

// Load returns the authority that has this key. Its certificate is one of those given.
//
// Errors: the key cannot be read; it belongs to none of the certificates.
func Load(keyPEM []byte, certificates []*x509.Certificate) (*Authority, error) {
	data, _ := pem.Decode(keyPEM)
	if data == nil {
		return nil, errors.New("the key is not in PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(data.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the key: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key is a %T, want one of ECDSA", parsed)
	}
	for _, c := range certificates {
		if key.PublicKey.Equal(c.PublicKey) && c.IsCA {
			return &Authority{certificate: c, key: key, lifetime: c.NotAfter.Sub(c.NotBefore)}, nil
		}
	}
	return nil, errors.New("the key belongs to none of the certificates")
}

// Certificate returns the authority's certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate }

// Key returns the authority's key in PEM.
func (a *Authority) Key() ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(a.key)
	return block("PRIVATE KEY", raw), err
}

// For returns the authority with another lifetime of what it signs. Nothing that it signs outlives its own certificate.
func (a *Authority) For(lifetime time.Duration) *Authority {
	other := *a
	other.lifetime = lifetime
	return &other
}

// Pool returns a pool that has only the authority's certificate.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte { return block("CERTIFICATE", a.certificate.Raw) }

// Server signs the certificate of a server at an IP address, at localhost and at other names.
func (a *Authority) Server(ip net.IP, names ...string) (tls.Certificate, error) {
	return a.server([]net.IP{ip}, append([]string{"localhost"}, names...))
}

// Names signs the certificate of a server at these names alone, of which some may be IP addresses.
func (a *Authority) Names(names ...string) (tls.Certificate, error) {
	ips, hosts := Split(names)
	return a.server(ips, hosts)
}

// Split returns the IP addresses among names, and the others.
func Split(names []string) (ips []net.IP, hosts []string) {
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			ips = append(ips, ip)
		} else {
			hosts = append(hosts, name)
		}
	}
	return ips, hosts
}

func (a *Authority) server(ips []net.IP, names []string) (tls.Certificate, error) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "flyball"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: ips, DNSNames: names,
	})
}

// Client signs the certificate of a user.
func (a *Authority) Client(name string, groups ...string) (tls.Certificate, error) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: groups}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// sign gives the certificate a serial number, a lifetime and a new key. The authority's own is signed with that key.
func (a *Authority) sign(template *x509.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now() // Clocks differ: a certificate is valid since an hour.
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(a.lifetime)
	parent, signer := a.certificate, a.key
	switch {
	case parent == nil:
		parent, signer = template, key
	case template.NotAfter.After(parent.NotAfter):
		template.NotAfter = parent.NotAfter
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
}

// PEM returns a certificate and its key.
func PEM(c tls.Certificate) (certificate, key []byte, err error) {
	raw, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	return block("CERTIFICATE", c.Certificate[0]), block("PRIVATE KEY", raw), err
}

func block(kind string, data []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
}
