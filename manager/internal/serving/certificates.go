package serving

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"k8s.io/client-go/util/cert"
)

// SelfSigned returns the TLS configuration of a server with a new self-signed certificate for this host and loopback.
// Clients cannot verify it.
func SelfSigned() (*tls.Config, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("self-signed certificate: %w", err)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.IPv4(127, 0, 0, 1)},
		[]string{"localhost"})
	if err != nil {
		return nil, fmt.Errorf("self-signed certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("self-signed certificate: %w", err)
	}
	config := serverConfig()
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// FromFiles returns the TLS configuration of a server whose certificate and key are in PEM files. The files are
// reloaded when they change.
//
// Errors: the files cannot be read, or the key does not belong to the certificate.
func FromFiles(certFile, keyFile string) (*tls.Config, error) {
	files := NewFiles(certFile, keyFile)
	if _, err := files.GetCertificate(nil); err != nil {
		return nil, err
	}
	config := serverConfig()
	config.GetCertificate = files.GetCertificate
	return config, nil
}

func serverConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
}

// Files is a certificate in files that another process replaces from time to time.
type Files struct {
	reloaded[tls.Certificate]
}

// NewFiles returns the certificate in these files, which need not exist yet.
func NewFiles(certFile, keyFile string) *Files {
	return &Files{reloaded[tls.Certificate]{
		names: []string{certFile, keyFile}, what: "certificate",
		load: func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				return nil, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err)
			}
			return &pair, nil
		},
	}}
}

// GetCertificate implements the field of that name in [tls.Config]. It reloads the files if they have changed, and
// returns the last good pair while they do not match, for example because only one of them has been replaced.
//
// Errors: there was no good pair yet.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.get() }

// Authorities has the certificates of authorities in a file that another process replaces from time to time.
type Authorities struct {
	reloaded[x509.CertPool]
}

// NewAuthorities returns the authorities in the file, which need not exist yet.
func NewAuthorities(file string) *Authorities {
	return &Authorities{reloaded[x509.CertPool]{
		names: []string{file}, what: "authorities",
		load: func() (*x509.CertPool, error) {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("authorities of clients: %w", err)
			}
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(text) {
				return nil, fmt.Errorf("authorities of clients: %s has no certificate", file)
			}
			return pool, nil
		},
	}}
}

// Pool returns the authorities. It reloads the file if it has changed. While the file cannot be used, Pool returns the
// last good authorities.
//
// Errors: there were none yet.
func (a *Authorities) Pool() (*x509.CertPool, error) { return a.get() }
