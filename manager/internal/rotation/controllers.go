package rotation

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/certs"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
	"github.com/flyball-dev/flyball/workqueue"
)

const (
	defaultLifetime          = 90 * 24 * time.Hour
	defaultAuthorityLifetime = 10 * 365 * 24 * time.Hour
	namespaceFile            = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// Defaults returns o with its defaults.
//
// Errors: options that contradict each other, or that are missing.
func Defaults(o webhook.Certificates) (webhook.Certificates, error) {
	o.Lifetime = cmp.Or(o.Lifetime, defaultLifetime)
	o.AuthorityLifetime = cmp.Or(o.AuthorityLifetime, defaultAuthorityLifetime)
	if o.Namespace == "" {
		own, err := os.ReadFile(namespaceFile)
		if err != nil {
			return o, errors.New("Options.Webhook.Certificates.Namespace is empty, and this process is not in a Pod: " +
				"set it to the namespace of the Secret and the Service")
		}
		o.Namespace = strings.TrimSpace(string(own))
	}
	switch {
	case o.Service == "" && len(o.DNSNames) == 0:
		return o, errors.New("Options.Webhook.Certificates has neither Service nor DNSNames, so nobody could trust it")
	case o.Lifetime < time.Hour:
		return o, fmt.Errorf("Options.Webhook.Certificates.Lifetime is %v, want at least an hour", o.Lifetime)
	case o.AuthorityLifetime < 2*o.Lifetime:
		return o, fmt.Errorf("Options.Webhook.Certificates.AuthorityLifetime is %v, want at least twice Lifetime, %v",
			o.AuthorityLifetime, o.Lifetime)
	}
	return o, validateNames(o.DNSNames)
}

// validateNames returns an error if no certificate can be valid for one of the names. The rotator would otherwise sign
// one certificate after the other.
func validateNames(names []string) error {
	leaf := &x509.Certificate{}
	leaf.IPAddresses, leaf.DNSNames = certs.Split(names)
	for _, name := range names {
		if name == "" || leaf.VerifyHostname(name) != nil {
			return fmt.Errorf("Options.Webhook.Certificates.DNSNames has %q, want a host name or an IP address", name)
		}
	}
	return nil
}

// CertificateStore has the certificate that this replica serves, which is the last good one of the Secret.
//
// Concurrency: all methods may be called from any goroutine.
type CertificateStore struct {
	secret types.NamespacedName
	names  []string
	// service is the Service of the webhooks; its name may be empty.
	service types.NamespacedName

	mu sync.Mutex
	// good is the last state whose certificate could be served. The certificate is served until there is a better one.
	good state
	// problem is why the current content of the Secret is not used; nil if it is used.
	problem error
	// lackingNames is why the served certificate is not valid for all names; nil if it is.
	lackingNames error
}

// NewCertificateStore returns a store without a certificate. o must have its defaults; see [Defaults].
func NewCertificateStore(o webhook.Certificates) *CertificateStore {
	names := slices.Clone(o.DNSNames)
	if o.Service != "" {
		host := o.Service + "." + o.Namespace + ".svc"
		names = append([]string{host, host + ".cluster.local", o.Service + "." + o.Namespace, o.Service}, names...)
	}
	return &CertificateStore{
		secret:  types.NamespacedName{Namespace: o.Namespace, Name: o.Secret},
		service: types.NamespacedName{Namespace: o.Namespace, Name: o.Service}, names: names,
	}
}

// GetCertificate implements the field of that name in [tls.Config].
//
// Errors: there has been no good certificate yet.
func (c *CertificateStore) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.good.serving != nil:
		return c.good.serving, nil
	case c.problem != nil:
		return nil, c.problem
	}
	return nil, fmt.Errorf("the Secret %s was not read yet", c.secret)
}

// Note returns a problem of the served certificate: it is older than that of the Secret, or lacks names. Note is empty
// if there is no problem.
func (c *CertificateStore) Note() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.problem != nil:
		return fmt.Sprintf("serving the last good certificate: %v", c.problem)
	case c.lackingNames != nil:
		return fmt.Sprintf("serving a certificate that lacks names: the Secret %s: %v", c.secret, c.lackingNames)
	}
	return ""
}

// update serves the certificate of s from now on, if it is valid. It serves a certificate that lacks names, because
// most calls use one of the others. But if the last certificate has all names, update continues to serve that one.
func (c *CertificateStore) update(s state, wrong error) {
	now, err := time.Now(), wrong
	var lackingNames error
	if s.serving == nil && err == nil {
		err = errors.New("it has no certificate yet")
	} else if s.serving != nil {
		if err = verify(s.serving.Leaf, s.trusted, nil, now); err == nil {
			lackingNames = verify(s.serving.Leaf, s.trusted, c.names, now)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.problem = fmt.Errorf("the Secret %s: %w", c.secret, err)
		return
	}
	c.problem, c.lackingNames = nil, lackingNames
	if last := c.good.serving; lackingNames != nil && last != nil && verify(last.Leaf, s.trusted, c.names, now) == nil {
		s.serving, c.lackingNames = last, nil
	}
	if !s.lost() {
		c.good = s
	} else {
		c.good.serving = s.serving
	}
}

func (c *CertificateStore) lastGood() state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.good
}

func (c *CertificateStore) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = err
}

// reconcile reads the Secret and serves its certificate. Every replica does that.
func (c *CertificateStore) reconcile(ctx context.Context, from client.Reader) (reconcile.Result, error) {
	secret, err := readSecret(ctx, from, c.secret)
	if err != nil {
		c.failed(err)
		return reconcile.Result{}, err
	}
	if secret == nil {
		c.failed(fmt.Errorf("the Secret %s does not exist; a replica creates it", c.secret))
		return reconcile.Result{}, nil
	}
	s, wrong := decode(secret.Data)
	c.update(s, wrong)
	if note := c.Note(); note != "" {
		klog.FromContext(ctx).Info("Certificate of the Secret is not good", "note", note)
	}
	return reconcile.Result{RequeueAfter: recheckInterval}, nil
}

// Cluster has the clients of the controllers.
type Cluster struct {
	Informers *informer.Factory
	Client    client.Client
	// Reader reads from the server. The reads are few, and writes depend on them, so no cache is used.
	Reader  client.Reader
	Metrics workqueue.MetricsProvider
}

// Controller is a controller of this package.
type Controller struct {
	*reconcile.Controller[reconcile.Request]
}

// NeedLeaderElection returns false. During a rollout the leader may be of a version without webhooks, or with other
// names. A new replica would then wait for the leader to end, while the leader is kept until the new replica is ready.
func (*Controller) NeedLeaderElection() bool { return false }

// NewFollower returns the controller that passes the certificate of the Secret to the store. It needs only permission
// to read the Secret, so a replica can serve even if it has no other permission.
func NewFollower(c *CertificateStore, in Cluster) (*Controller, error) {
	f := reconcile.Func[reconcile.Request](func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		return c.reconcile(ctx, in.Reader)
	})
	return build("webhook-certificate", f, in, []watched{c.watched()})
}

// NewRotator returns the controller that writes the Secret and the bundles.
func NewRotator(c *CertificateStore, in Cluster, o webhook.Certificates) (*Controller, error) {
	r := &rotator{options: o, store: c, reader: in.Reader, client: in.Client, targets: targetsOf(o)}
	f := reconcile.Func[reconcile.Request](func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		return r.reconcile(ctx)
	})
	inputs := []watched{c.watched()}
	for _, t := range r.targets {
		inputs = append(inputs, watched{kind: t.kind, name: t.name})
	}
	return build("webhook-rotation", f, in, inputs)
}

// watched is an object that wakes a controller.
type watched struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

func (c *CertificateStore) watched() watched {
	return watched{kind: secretKind, namespace: c.secret.Namespace, name: c.secret.Name}
}

func build(name string, r reconcile.Reconciler[reconcile.Request], in Cluster, inputs []watched) (*Controller, error) {
	c := reconcile.New(name, r, reconcile.Options[reconcile.Request]{Metrics: in.Metrics})
	key := reconcile.Request{}
	key.Namespace, key.Name = inputs[0].namespace, inputs[0].name
	wake := handler.EnqueueMapped(func(context.Context, *unstructured.Unstructured) []reconcile.Request {
		return []reconcile.Request{key}
	})
	for _, w := range inputs {
		o := informer.InformerOptions{Kind: w.kind, FieldSelector: "metadata.name=" + w.name}
		if w.namespace == "" {
			o.ClusterScoped = true
		} else {
			o.Namespaces = []string{w.namespace}
		}
		objects, err := informer.ForOptions[*unstructured.Unstructured](in.Informers, o)
		if err != nil {
			return nil, err
		}
		if err := c.Watch(source.Kind(objects, wake)); err != nil {
			return nil, err
		}
	}
	c.Enqueue(key) // because a missing object causes no event
	return &Controller{c}, nil
}
