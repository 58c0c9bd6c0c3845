package manager

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/loopback"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/manager/internal/rotation"
	"github.com/flyball-dev/flyball/manager/internal/serving"
	"github.com/flyball-dev/flyball/manager/webhook"
)

// Serving configures the manager's listeners. The zero value means plain HTTP, which metrics and debugging may use only
// on a loopback address.
type Serving struct {
	// CertFile and KeyFile are a certificate and its key, in PEM. They are reloaded when they change.
	CertFile, KeyFile string
	// SelfSigned serves TLS with a certificate made at start-up. Clients cannot verify it, so it is not for production.
	SelfSigned bool
	// Review asks the API server to authenticate and authorize each reader of metrics, profiles and configuration. The
	// bearer token must be valid, and the user must be allowed to get the path (by a ClusterRole with nonResourceURLs).
	// A request is refused if the API server does not answer. Review needs TLS. Health stays open to everyone.
	Review bool
	// Insecure serves metrics, profiles and configuration to everyone who can reach the address.
	Insecure bool
}

func (s Serving) tls() bool { return s.CertFile != "" || s.SelfSigned }

// validateServing returns an error for options that contradict each other or would expose more than health without
// authentication.
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
			return fmt.Errorf(
				"manager: %s %s is not loopback: set Serving.Review with CertFile and KeyFile, or Serving.Insecure to "+
					"serve it to everyone who can reach it", what, addr,
			)
		}
	}
	return nil
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && loopback.Host(host)
}

// tlsConfig returns nil for plain HTTP.
func (s Serving) tlsConfig() (*tls.Config, error) {
	switch {
	case s.SelfSigned:
		return serving.SelfSigned()
	case s.CertFile != "":
		return serving.FromFiles(s.CertFile, s.KeyFile)
	default:
		return nil, nil
	}
}

// newServer returns the server of the manager's health, metrics, profiles and configuration.
func newServer(m *Manager, config *rest.Config) (*serving.Server, error) {
	o := m.options
	m.guard = func(h http.Handler) http.Handler { return h }
	health := m.HealthHandler()
	if o.Serving.Review {
		reviews, err := serving.NewReviewer(config)
		if err != nil {
			return nil, err
		}
		m.guard = reviews.Guard
		health = reviews.Choose(health, m.healthHandler(withoutReason))
	}
	var certificate *tls.Config
	if o.HealthAddr+o.MetricsAddr+o.DebugAddr != "" {
		var err error
		if certificate, err = o.Serving.tlsConfig(); err != nil {
			return nil, err
		}
	}
	s := serving.New(certificate)
	if mux := s.Mux(o.HealthAddr, "health"); mux != nil {
		for _, path := range []string{
			"/healthz", "/livez", "/readyz", "/healthz/{name}", "/livez/{name}", "/readyz/{name}",
		} {
			mux.Handle("GET "+path, health)
		}
	}
	if mux := s.Mux(o.MetricsAddr, "metrics"); mux != nil {
		mux.Handle("GET /metrics", m.guard(o.Metrics))
	}
	debug := []string{"profiles"}
	if o.Inspect != nil {
		debug = append(debug, "the inspector")
	}
	if mux := s.Mux(o.DebugAddr, debug...); mux != nil {
		s.Guard(o.DebugAddr, func(h http.Handler) http.Handler { return loopback.Guard(h, isPage) })
		handler := m.guard(serving.Debug(o.Configz))
		mux.Handle("GET /debug/pprof/", handler)
		mux.Handle("GET /configz", handler)
		if o.Inspect != nil {
			mux.Handle("/inspect/", m.guard(o.Inspect.Handler(m)))
		}
	}
	return s, nil
}

// isPage reports whether pages of other sites may link to path. Only the inspector's page may be linked to.
func isPage(path string) bool {
	return strings.HasPrefix(path, "/inspect/") && !strings.HasPrefix(path, "/inspect/api/")
}

// AddMetricsServerExtraHandler serves another path at MetricsAddr, under the same rules as /metrics. It does nothing if
// metrics are off. Handlers can be added at any time.
//
// Errors: no handler; a path that is taken or is no pattern of [http.ServeMux].
func (m *Manager) AddMetricsServerExtraHandler(path string, handler http.Handler) (err error) {
	if err := misuse.Nil("the handler", handler); err != nil {
		return fmt.Errorf("manager: add a handler of %s: %w", path, err)
	}
	if m.options.MetricsAddr == "" {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("manager: add a handler of %s: %v", path, v)
		}
	}()
	m.http.Mux(m.options.MetricsAddr).Handle(path, m.guard(handler))
	return nil
}

// HealthAddr returns the address that serves health, with the actual port for ":0". It is empty before Run, and if
// health is off.
func (m *Manager) HealthAddr() string { return m.http.Addr(m.options.HealthAddr) }

// MetricsAddr returns the address that serves metrics, with the actual port for ":0". It is empty before Run, and if
// metrics are off.
func (m *Manager) MetricsAddr() string { return m.http.Addr(m.options.MetricsAddr) }

// DebugAddr returns the address that serves profiles and the configuration, with the actual port for ":0". It is empty
// before Run, and if debugging is off.
func (m *Manager) DebugAddr() string { return m.http.Addr(m.options.DebugAddr) }

// addWebhooks makes the server of webhooks. If the manager keeps the certificate itself, addWebhooks also adds the
// controllers that do so.
func (m *Manager) addWebhooks() (err error) {
	o := m.options.Webhook
	if o.Port > 65535 {
		return fmt.Errorf("Options.Webhook.Port is %d: want at most 65535, or -1 to serve no webhooks", o.Port)
	}
	if metrics, ok := m.options.Metrics.(webhook.Metrics); ok && o.Metrics == nil {
		o.Metrics = metrics
	}
	if o.Certificates.Secret == "" {
		m.hooks = webhook.NewServer(o)
		return nil
	}
	if o.Certificates, err = rotation.Defaults(o.Certificates); err != nil {
		return err
	}
	m.certificates = rotation.NewCertificateStore(o.Certificates)
	o.TLSOpts = append(slices.Clone(o.TLSOpts),
		func(c *tls.Config) { c.GetCertificate = m.certificates.GetCertificate })
	m.hooks = webhook.NewServer(o)
	in := rotation.Cluster{
		Informers: m.informers, Client: m.cluster, Reader: m.GetAPIReader(), Metrics: m.QueueMetrics(),
	}
	follower, err := rotation.NewFollower(m.certificates, in)
	if err != nil {
		return err
	}
	rotator, err := rotation.NewRotator(m.certificates, in, o.Certificates)
	if err != nil {
		return err
	}
	if err := m.Add(follower); err != nil {
		return err
	}
	return m.Add(rotator)
}

// GetWebhookServer returns the server of webhooks, which Run runs once a webhook is registered. All replicas serve,
// whoever leads.
func (m *Manager) GetWebhookServer() *webhook.Server { return m.hooks }

// endWebhooks ends the server, which waits for requests in flight.
func (m *Manager) endWebhooks(hooks *part) error {
	return hooks.end(m.hooks.DrainTimeout() + partTimeout)
}

func (m *Manager) checkWebhooks() check {
	c := check{name: "webhooks"}
	if err := m.hooks.Health(); err != nil {
		c.problem = err.Error()
		return c
	}
	c.note = m.hooks.Note()
	if m.certificates != nil {
		c.note = cmp.Or(c.note, m.certificates.Note())
	}
	return c
}
