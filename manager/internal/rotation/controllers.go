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
	return o, possible(o.DNSNames)
}

// possible returns an error if no certificate can be good for one of the names. It would be signed for ever.
func possible(names []string) error {
	leaf := &x509.Certificate{}
	leaf.IPAddresses, leaf.DNSNames = certs.Split(names)
	for _, name := range names {
		if name == "" || leaf.VerifyHostname(name) != nil {
			return fmt.Errorf("Options.Webhook.Certificates.DNSNames has %q, want a host name or an IP address", name)
		}
	}
	return nil
}

// Keeper has what this replica serves: the last good certificate of the Secret.
//
// Concurrency: all methods may be called from any goroutine.
type Keeper struct {
	secret types.NamespacedName
	names  []string
	// service is that of the webhooks; its name may be empty.
	service types.NamespacedName

	mu sync.Mutex
	// good is the last state whose certificate could be served. Its certificate stays in use until a better one comes.
	good state
	// problem is why the Secret as it is now is not used; nil if it is.
	problem error
	// lacking is why the certificate that is served is not good for all names; nil if it is.
	lacking error
}

// NewKeeper returns a keeper without a certificate. o has its defaults.
func NewKeeper(o webhook.Certificates) *Keeper {
	names := slices.Clone(o.DNSNames)
	if o.Service != "" {
		host := o.Service + "." + o.Namespace + ".svc"
		names = append([]string{host, host + ".cluster.local", o.Service + "." + o.Namespace, o.Service}, names...)
	}
	return &Keeper{
		secret:  types.NamespacedName{Namespace: o.Namespace, Name: o.Secret},
		service: types.NamespacedName{Namespace: o.Namespace, Name: o.Service}, names: names,
	}
}

// GetCertificate is for the field of that name in [tls.Config].
//
// Errors: there was no good certificate yet.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.good.serving != nil:
		return k.good.serving, nil
	case k.problem != nil:
		return nil, k.problem
	}
	return nil, fmt.Errorf("the Secret %s was not read yet", k.secret)
}

// Note returns what is wrong although a certificate is served: an earlier one than the Secret has, or one that lacks
// names. It is empty if all is well.
func (k *Keeper) Note() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.problem != nil:
		return fmt.Sprintf("serving the last good certificate: %v", k.problem)
	case k.lacking != nil:
		return fmt.Sprintf("serving a certificate that lacks names: the Secret %s: %v", k.secret, k.lacking)
	}
	return ""
}

// take makes the certificate of s the one that is served, if it can be. One that lacks names is served too, unless
// there is one that has them: most calls use a name that it has.
func (k *Keeper) take(s state, wrong error) {
	now, err := time.Now(), wrong
	var lacking error
	if s.serving == nil && err == nil {
		err = errors.New("it has no certificate yet")
	} else if s.serving != nil {
		if err = verify(s.serving.Leaf, s.trusted, nil, now); err == nil {
			lacking = verify(s.serving.Leaf, s.trusted, k.names, now)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.problem = fmt.Errorf("the Secret %s: %w", k.secret, err)
		return
	}
	k.problem, k.lacking = nil, lacking
	if last := k.good.serving; lacking != nil && last != nil && verify(last.Leaf, s.trusted, k.names, now) == nil {
		s.serving, k.lacking = last, nil
	}
	if !s.lost() {
		k.good = s
	} else {
		k.good.serving = s.serving
	}
}

// remembered returns the last good state.
func (k *Keeper) remembered() state {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.good
}

func (k *Keeper) failed(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem = err
}

// reconcile serves what the Secret has. Every replica does that.
func (k *Keeper) reconcile(ctx context.Context, from client.Reader) (reconcile.Result, error) {
	secret, err := readSecret(ctx, from, k.secret)
	if err != nil {
		k.failed(err)
		return reconcile.Result{}, err
	}
	if secret == nil {
		k.failed(fmt.Errorf("the Secret %s does not exist; a replica creates it", k.secret))
		return reconcile.Result{}, nil
	}
	s, wrong := decode(secret.Data)
	k.take(s, wrong)
	if note := k.Note(); note != "" {
		klog.FromContext(ctx).Info("Certificate of the Secret is not good", "note", note)
	}
	return reconcile.Result{RequeueAfter: recheck}, nil
}

// Cluster is what the controllers work with.
type Cluster struct {
	Informers *informer.Factory
	Client    client.Client
	// Reader asks the server. What is read decides what is written, and is little: no cache is needed.
	Reader  client.Reader
	Metrics workqueue.MetricsProvider
}

// Controller is a controller of this package.
type Controller struct {
	*reconcile.Controller[reconcile.Request]
}

// NeedLeaderElection returns false. In a rollout the replica that leads may be of a version without webhooks, or with
// other names, and a new one would wait for it to end, which waits for the new one to be ready.
func (*Controller) NeedLeaderElection() bool { return false }

// NewFollower returns the controller that gives the keeper what the Secret has. It needs no permission but to read
// that, so a replica serves whatever else is forbidden.
func NewFollower(k *Keeper, in Cluster) (*Controller, error) {
	f := reconcile.Func[reconcile.Request](func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		return k.reconcile(ctx, in.Reader)
	})
	return build("webhook-certificate", f, in, []watched{k.watched()})
}

// NewRotator returns the controller that keeps the Secret and the bundles.
func NewRotator(k *Keeper, in Cluster, o webhook.Certificates) (*Controller, error) {
	r := &rotator{options: o, keeper: k, reader: in.Reader, client: in.Client, targets: targetsOf(o)}
	f := reconcile.Func[reconcile.Request](func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		return r.reconcile(ctx)
	})
	inputs := []watched{k.watched()}
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

func (k *Keeper) watched() watched {
	return watched{kind: secretKind, namespace: k.secret.Namespace, name: k.secret.Name}
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
	c.Enqueue(key) // What is missing sends no event.
	return &Controller{c}, nil
}
