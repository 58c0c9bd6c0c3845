package manager

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

// Serving says how the manager's listeners serve. The zero value is plain HTTP, which is refused for metrics and debugging on
// an address that is not loopback.
type Serving struct {
	// CertFile and KeyFile are a certificate and its key, in PEM. They are read again when they change.
	CertFile, KeyFile string
	// SelfSigned serves TLS with a certificate made at the start, which clients cannot verify: not for production.
	SelfSigned bool
	// Review lets only those read metrics, profiles and configuration whom the API server knows by their bearer token, and
	// allows to get the path (a ClusterRole with nonResourceURLs). It needs TLS. Health is open to everybody. When the API
	// server does not answer, nobody is let in.
	Review bool
	// Insecure serves metrics, profiles and configuration to whoever reaches the address.
	Insecure bool
}

func (s Serving) tls() bool { return s.CertFile != "" || s.SelfSigned }

// validate refuses what would show more than health to strangers.
func (o Options) validateServing() error {
	s := o.Serving
	switch {
	case (s.CertFile == "") != (s.KeyFile == ""):
		return errors.New("manager: Serving needs CertFile and KeyFile, or neither")
	case s.SelfSigned && s.CertFile != "":
		return errors.New("manager: Serving.SelfSigned and CertFile are both set")
	case s.Review && !s.tls():
		return errors.New("manager: Serving.Review needs TLS, for tokens are sent: set CertFile and KeyFile")
	case s.Review && s.Insecure:
		return errors.New("manager: Serving.Review and Insecure contradict each other")
	}
	for what, addr := range map[string]string{"MetricsAddr": o.MetricsAddr, "DebugAddr": o.DebugAddr} {
		if addr != "" && !s.Review && !s.Insecure && !isLoopback(addr) {
			return fmt.Errorf("manager: %s %s is not loopback: set Serving.Review with CertFile and KeyFile, or Serving.Insecure to serve it to whoever reaches it", what, addr)
		}
	}
	return nil
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// tlsConfig is nil for plain HTTP.
func (s Serving) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	switch {
	case s.SelfSigned:
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
		config.Certificates = []tls.Certificate{pair}
	case s.CertFile != "":
		files := &certFiles{cert: s.CertFile, key: s.KeyFile}
		if _, err := files.get(); err != nil {
			return nil, err
		}
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return files.get() }
	default:
		return nil, nil
	}
	return config, nil
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

// debugHandler serves profiles and the configuration.
func (m *Manager) debugHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /configz", func(w http.ResponseWriter, _ *http.Request) {
		text, err := json.MarshalIndent(m.options.Configz, "", "  ")
		if err != nil {
			answer(w, http.StatusInternalServerError, "the configuration cannot be shown: "+err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(text, '\n'))
	})
	return mux
}
