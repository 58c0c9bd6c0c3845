// Package certs makes the certificates of a local server and its clients.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// Authority signs certificates. Its key exists only in memory.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	days        int
}

// NewAuthority makes an authority. Its own certificate and those that it signs are valid for this many days.
func NewAuthority(days int) (*Authority, error) {
	a := &Authority{days: days}
	signed, err := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "flyball-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	})
	if err != nil {
		return nil, err
	}
	a.key = signed.PrivateKey.(*ecdsa.PrivateKey)
	a.certificate, err = x509.ParseCertificate(signed.Certificate[0])
	return a, err
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
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "flyball"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{ip}, DNSNames: append([]string{"localhost"}, names...),
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
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.AddDate(0, 0, a.days)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
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
