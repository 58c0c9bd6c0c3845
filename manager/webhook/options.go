package webhook

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/flyball-dev/flyball/manager/webhook/admission"
	"k8s.io/apimachinery/pkg/runtime"
)

// What package admission has, by the names that controller-runtime gives it.
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
	// read again when it changes; connections that are open stay. Empty means that every client may call.
	ClientCAName string
	// TLSOpts change the TLS configuration before the server listens. If they set GetCertificate or Certificates, the
	// files are not used. HTTP/2 stays off.
	TLSOpts []func(*tls.Config)
	// WebhookMux has further handlers, for paths that are not registered with [Server.Register]. They are not measured.
	WebhookMux *http.ServeMux
	// ListenAtOnce makes Run listen before there is a webhook.
	ListenAtOnce bool
	// DrainTimeout is how long requests in flight may go on after the stop. Zero means 5 s.
	DrainTimeout time.Duration
	// Metrics receives what is measured; nil means that nothing is. The manager sets it to its own.
	Metrics Metrics
}

// Certificates is a certificate that the manager makes and renews, with an authority of its own. It keeps both in a
// Secret, and the authority in the caBundle of the named configurations. Every replica does that, whoever leads, and
// serves what is in the Secret.
type Certificates struct {
	// Secret is the name of the Secret, which a replica creates. Empty means that this is off. If one of the webhooks
	// gets Secrets, exclude Namespace by its namespaceSelector, or this Secret by its matchConditions: nobody can call
	// the webhook before the Secret is written, and with failurePolicy Fail nobody could write the Secret.
	Secret string
	// Namespace is the namespace of the Secret and of the Service. Empty means that of this Pod.
	Namespace string
	// Service is the name of the Service through which an API server reaches the webhooks. The certificate is made out
	// to it. A caBundle that belongs to another Service is left alone; if Service is empty, those of all Services are.
	Service string
	// DNSNames are further names for the certificate. Some may be IP addresses. The caBundle that belongs to a URL is
	// kept if the URL's host is one of them, or a name of the Service.
	DNSNames []string
	// ValidatingWebhooks, MutatingWebhooks and CustomResourceDefinitions name the objects whose caBundle is kept. They
	// may be created later. A definition that does not convert by a webhook is left alone.
	ValidatingWebhooks, MutatingWebhooks, CustomResourceDefinitions []string
	// Lifetime is that of certificates, which are renewed when a third of it is left. Zero means 90 days; at least an
	// hour.
	Lifetime time.Duration
	// AuthorityLifetime is that of the authority, whose successor is made when a third of it is left. Zero means 10
	// years; at least twice Lifetime.
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
