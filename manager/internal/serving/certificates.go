package serving

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
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
	files := &certFiles{cert: certFile, key: keyFile}
	if _, err := files.get(); err != nil {
		return nil, err
	}
	config := serverConfig()
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return files.get() }
	return config, nil
}

func serverConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
}

// certFiles is a certificate in files that another process replaces now and then.
type certFiles struct {
	cert, key string

	mu sync.Mutex
	// pair is the last pair that was loaded without an error, when the files had these stamps.
	pair   *tls.Certificate
	stamps [2]stamp
	looked time.Time
}

// stamp tells two states of a file apart.
type stamp struct {
	modified time.Time
	size     int64
}

// lookInterval is the minimum time between two checks of the files.
const lookInterval = time.Second

// get returns the certificate, which it reloads if the files have changed. It returns the last good pair while the
// files do not match, for example because only one of them has been replaced.
func (c *certFiles) get() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair != nil && time.Since(c.looked) < lookInterval {
		return c.pair, nil
	}
	c.looked = time.Now()
	var now [2]stamp
	for i, name := range []string{c.cert, c.key} {
		if info, err := os.Stat(name); err == nil {
			now[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	if c.pair != nil && now == c.stamps {
		return c.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	switch {
	case err == nil:
		c.pair, c.stamps = &pair, now
	case c.pair == nil:
		return nil, fmt.Errorf("certificate %s with key %s: %w", c.cert, c.key, err)
	default:
		klog.Background().Error(err, "Failed to reload the certificate, serving the old one", "file", c.cert)
	}
	return c.pair, nil
}
