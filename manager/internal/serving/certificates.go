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

// SelfSigned returns the TLS configuration of a server with a certificate made now for this host and loopback, which
// clients cannot verify.
func SelfSigned() (*tls.Config, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("self-signed certificate: %w", err)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
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

// FromFiles returns the TLS configuration of a server whose certificate and key are read from PEM files, and read again
// when the files change.
//
// Errors: files that cannot be read now, or do not fit together.
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

// certFiles is a certificate in files that somebody else replaces now and then.
type certFiles struct {
	cert, key string

	mu sync.Mutex
	// pair is what was read last without an error, when the files had the stamps.
	pair   *tls.Certificate
	stamps [2]stamp
	looked time.Time
}

// stamp tells two states of a file apart.
type stamp struct {
	modified time.Time
	size     int64
}

// lookInterval is the least time between two looks at the files.
const lookInterval = time.Second

// get returns the certificate, read again when the files have changed. While what they hold does not fit together (one was
// replaced, the other is about to be) the last good pair is served.
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
		klog.Background().Error(err, "Certificate cannot be read again, the old one is served", "file", c.cert)
	}
	return c.pair, nil
}
