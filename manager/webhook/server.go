package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/manager/internal/serving"
	"github.com/flyball-dev/flyball/manager/webhook/admission"
	"github.com/flyball-dev/flyball/manager/webhook/conversion"
)

// ConvertPath is the path of the conversion webhook, which converts all kinds.
const ConvertPath = "/convert"

// Server serves webhooks over TLS. Manager.GetWebhookServer returns the one that the manager runs.
//
// Concurrency: all methods may be called from any goroutine.
type Server struct {
	options Options
	mux     *http.ServeMux
	// files is the certificate of Options.CertDir; nil if TLSOpts bring one.
	files *serving.Files
	// authorities are those of Options.ClientCAName; nil without it.
	authorities *serving.Authorities
	tls         *tls.Config
	// some is closed by Register when the first webhook is registered; with Options.ListenAtOnce, by NewServer.
	some chan struct{}

	mu       sync.Mutex
	paths    []string       // in order of registration
	inFlight map[string]int // requests by path
	started  bool
	listener net.Listener // nil before the server listens
	// conversion is the webhook at ConvertPath; nil before Conversion.
	conversion *conversion.Webhook
}

// NewServer returns a server without webhooks. It opens no port and reads no file.
func NewServer(o Options) *Server {
	s := &Server{
		options: o.withDefaults(), mux: http.NewServeMux(), some: make(chan struct{}), inFlight: map[string]int{},
	}
	s.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	for _, change := range o.TLSOpts {
		change(s.tls)
	}
	s.tls.NextProtos = []string{"http/1.1"}
	if s.tls.GetCertificate == nil && len(s.tls.Certificates) == 0 {
		s.files = serving.NewFiles(s.file(s.options.CertName), s.file(s.options.KeyName))
		s.tls.GetCertificate = s.files.GetCertificate
		if m := s.options.Metrics; m != nil {
			m.WebhookCertificates(func() (int, int) { l := s.files.Loads(); return l.Total, l.Failed })
		}
	}
	if s.options.ClientCAName != "" {
		s.authorities = serving.NewAuthorities(s.file(s.options.ClientCAName))
		s.tls.GetConfigForClient = demandClients(s.tls, s.authorities)
	}
	s.mux.HandleFunc("/", s.unknown)
	if s.options.ListenAtOnce {
		close(s.some)
	}
	return s
}

func (s *Server) file(name string) string { return filepath.Join(s.options.CertDir, name) }

// Register serves hook at path: a path such as /validate-v1-pod, or one that ends with a slash, for all paths below it.
// A server that runs serves it at once; it begins to listen with its first webhook.
//
// Errors: no handler; a path that does not begin with a slash, or is taken.
func (s *Server) Register(path string, hook http.Handler) error {
	if err := misuse.Nil("the handler", hook); err != nil {
		return fmt.Errorf("register the webhook %s: %w", path, err)
	}
	if !strings.HasPrefix(path, "/") || path == "/" || strings.ContainsAny(path, " {}?#") {
		return fmt.Errorf("register the webhook %q: want a path like /validate-v1-pod", path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.registerLocked(path, hook)
}

func (s *Server) registerLocked(path string, hook http.Handler) error {
	if slices.Contains(s.paths, path) {
		return fmt.Errorf("register the webhook %s: the path is taken", path)
	}
	s.mux.Handle(path, s.measured(path, hook))
	s.paths = append(s.paths, path)
	if len(s.paths) == 1 && !s.options.ListenAtOnce {
		close(s.some)
	}
	klog.Background().V(2).Info("Registered webhook", "path", path)
	return nil
}

// Conversion returns the webhook that converts all kinds. The first call registers it at [ConvertPath], and sets its
// scheme.
//
// Errors: the path is taken by something else.
func (s *Server) Conversion(scheme *runtime.Scheme) (*conversion.Webhook, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conversion != nil {
		return s.conversion, nil
	}
	hook := conversion.New(scheme)
	if err := s.registerLocked(ConvertPath, hook); err != nil {
		return nil, err
	}
	s.conversion = hook
	return hook, nil
}

// Registered returns the paths of the webhooks, in order of registration.
func (s *Server) Registered() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.paths)
}

// ServeHTTP answers a request as if it had come over TLS, for tests without a network.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Addr returns the address on which the server listens, with the actual port. It is empty before the server listens.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// NeedLeaderElection returns false: every replica serves.
func (*Server) NeedLeaderElection() bool { return false }

// Run waits for the first webhook (without Options.ListenAtOnce), listens, and serves until ctx ends. It then takes no
// more requests, and waits for those in flight. It may be called once.
//
// Errors: the port cannot be opened; ClientCAName cannot be read; requests that were cut short, by path.
func (s *Server) Run(ctx context.Context) error {
	if s.options.Port < 0 && s.options.Listener == nil {
		<-ctx.Done()
		return nil
	}
	if err := s.begin(); err != nil {
		return fmt.Errorf("serve webhooks: %w", err)
	}
	if l := s.options.Listener; l != nil {
		defer func() { _ = l.Close() }() // also if it is never served
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.some:
	}
	l, err := s.listen()
	if err != nil {
		return fmt.Errorf("serve webhooks: %w", err)
	}
	log := klog.FromContext(ctx)
	log.Info("Serving webhooks", "address", l.Addr().String(), "paths", s.Registered())
	if s.files != nil {
		if _, err := s.certificate(); err != nil {
			log.Error(err, "There is no certificate yet, so nobody can call the webhooks")
		}
	}
	if err := serving.Serve(ctx, tls.NewListener(l, s.tls), s.mux, s.options.DrainTimeout); err != nil {
		return fmt.Errorf("serve webhooks on %s: %w", l.Addr(), err)
	}
	return s.cutShort()
}

func (s *Server) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errors.New("Run called twice")
	}
	s.started = true
	return nil
}

func (s *Server) listen() (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.authorities != nil {
		if _, err := s.authorities.Pool(); err != nil {
			return nil, err
		}
	}
	l := s.options.Listener
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port))); err != nil {
			return nil, fmt.Errorf("%w: set Options.Webhook.Port to a free port, or to -1 for none", err)
		}
	}
	s.listener = l
	return l, nil
}

// demandClients returns a function for tls.Config.GetConfigForClient. Clients must then have a certificate signed by
// one of the authorities that are in the file at the time of the handshake.
func demandClients(own *tls.Config, authorities *serving.Authorities) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	chosen := own.GetConfigForClient
	return func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		config := own
		if chosen != nil {
			c, err := chosen(hello)
			if err != nil {
				return nil, err
			}
			config = cmp.Or(c, own)
		}
		pool, err := authorities.Pool()
		if err != nil {
			return nil, err
		}
		config = config.Clone()
		config.ClientCAs, config.ClientAuth = pool, tls.RequireAndVerifyClientCert
		return config, nil
	}
}

// cutShort returns an error that names the requests that have not ended.
func (s *Server) cutShort() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []string
	for _, path := range s.paths {
		if n := s.inFlight[path]; n > 0 {
			left = append(left, fmt.Sprintf("%s (%d)", path, n))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("webhooks cut short after %v: %s", s.options.DrainTimeout, strings.Join(left, ", "))
}

// DrainTimeout returns how long Run may take to return after its context has ended.
func (s *Server) DrainTimeout() time.Duration { return s.options.DrainTimeout }

// The types of package admission, under the names that controller-runtime gives them.
type (
	Admission                   = admission.Webhook
	AdmissionHandler            = admission.Handler
	AdmissionRequest            = admission.Request
	AdmissionResponse           = admission.Response
	Defaulter[T runtime.Object] = admission.Defaulter[T]
	Validator[T runtime.Object] = admission.Validator[T]
	CustomDefaulter             = admission.Defaulter[runtime.Object]
	CustomValidator             = admission.Validator[runtime.Object]
)

// DefaultPort is the port of Options.Port zero.
const DefaultPort = 9443

// Options configures a [Server]. The zero value serves on port 9443 of all addresses.
type Options struct {
	// Host is the address to listen on. Empty means all addresses.
	Host string
	// Port is the port to listen on. Zero means [DefaultPort]; negative means not to serve.
	Port int
	// Listener is used instead of Host and Port if it is not nil. Run closes it.
	Listener net.Listener
	// Certificates makes the manager keep the certificate itself, instead of reading it from CertDir. The zero value
	// means that the certificate is in files.
	Certificates Certificates
	// CertDir is the directory of the certificate and its key, in PEM: usually where a Secret is mounted. Empty means
	// k8s-webhook-server/serving-certs in the directory for temporary files.
	CertDir string
	// CertName and KeyName are the names of the files. Empty means tls.crt and tls.key.
	CertName, KeyName string
	// ClientCAName is the name of a file in CertDir with certificates of authorities, also if Certificates is set.
	// Clients must then have a certificate signed by one of them. The file must exist before the server listens. It is
	// read again when it changes, which does not affect open connections. Empty means that every client may call.
	ClientCAName string
	// TLSOpts change the TLS configuration before the server listens. If they set GetCertificate or Certificates, the
	// files are not used. HTTP/2 stays off.
	TLSOpts []func(*tls.Config)
	// WebhookMux has further handlers, for paths that are not registered with [Server.Register]. They are not measured.
	WebhookMux *http.ServeMux
	// ListenAtOnce makes Run listen before there is a webhook.
	ListenAtOnce bool
	// DrainTimeout is how long requests in flight may continue after the stop. Zero means 5 s.
	DrainTimeout time.Duration
	// Metrics receives the measurements; nil means none. The manager sets it to its own metrics.
	Metrics Metrics
}

// Certificates makes the manager create and renew a certificate, with an authority of its own. Both are stored in a
// Secret. The manager also writes the authority into the caBundle of the named configurations. Every replica does all
// this, whether or not it leads, and serves the certificate in the Secret.
type Certificates struct {
	// Secret is the name of the Secret, which a replica creates. Empty means that this is off. If one of the webhooks
	// is called for Secrets, exclude Namespace by its namespaceSelector, or this Secret by its matchConditions. The
	// webhook cannot be called before the Secret is written, so with failurePolicy Fail the Secret could not be
	// written.
	Secret string
	// Namespace is the namespace of the Secret and of the Service. Empty means the namespace of this Pod.
	Namespace string
	// Service is the name of the Service through which an API server reaches the webhooks. The certificate is valid for
	// it. The manager does not change a caBundle that belongs to another Service. If Service is empty, it changes none
	// that belongs to a Service.
	Service string
	// DNSNames are further names for the certificate; some may be IP addresses. The manager also writes the caBundle of
	// a URL whose host is one of them, or a name of the Service.
	DNSNames []string
	// ValidatingWebhooks, MutatingWebhooks and CustomResourceDefinitions name the objects whose caBundles the manager
	// writes. They may be created later. A definition that does not convert by a webhook is not changed.
	ValidatingWebhooks, MutatingWebhooks, CustomResourceDefinitions []string
	// Lifetime is that of certificates, which are renewed when a third of it is left. Zero means 90 days; the minimum
	// is an hour.
	Lifetime time.Duration
	// AuthorityLifetime is that of the authority, whose successor is made when a third of it is left. Zero means 10
	// years; the minimum is twice Lifetime.
	AuthorityLifetime time.Duration
}

const defaultDrainTimeout = 5 * time.Second

func (o Options) withDefaults() Options {
	o.Port = cmp.Or(o.Port, DefaultPort)
	o.CertDir = cmp.Or(o.CertDir, filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs"))
	o.CertName, o.KeyName = cmp.Or(o.CertName, "tls.crt"), cmp.Or(o.KeyName, "tls.key")
	o.DrainTimeout = cmp.Or(o.DrainTimeout, defaultDrainTimeout)
	return o
}

// Metrics receives what a [Server] measures. Package manager/metrics implements it for Prometheus.
type Metrics interface {
	// WebhookRequest is called when a request of the webhook at path begins. It returns a function to be called at the
	// request's end, with the HTTP status of the response.
	WebhookRequest(path string) func(code int, took time.Duration)
	// WebhookPanic is called for a panic of the webhook at path.
	WebhookPanic(path string)
	// WebhookCertificates reports how often the certificate's files were loaded, and how often that failed.
	WebhookCertificates(loads func() (total, failed int))
}
