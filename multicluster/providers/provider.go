package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
)

// provider announces to a fleet the clusters that its find function reports to the roster. It connects to none of them.
type provider struct {
	name   string
	roster roster
	find   func(ctx context.Context) error
}

// Name implements multicluster.Provider.
func (p *provider) Name() string { return p.name }

// Health returns what cannot be announced, and why. Clusters that are not ready or do not answer are not an error here;
// their status shows that.
func (p *provider) Health() error { return p.roster.health() }

// Run implements multicluster.Provider.
func (p *provider) Run(ctx context.Context, fleet multicluster.Fleet) error {
	p.roster.begin(fleet)
	return p.find(ctx)
}

// follow finds clusters that objects in the local cluster describe. It calls observe for every object and for every
// change of one. observe reports the object's clusters to the roster, with the object's key as the place. An informer's
// handler calls observe, without a queue and workers, because announcing a cluster does not block.
func follow[T informer.Object](ctx context.Context, p *provider, f *informer.Factory, o informer.InformerOptions,
	observe func(key string, obj T),
) error {
	objects, err := informer.ForOptions[T](f, o)
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	defer informer.Release(objects)
	registration, err := objects.AddHandler(informer.Handler[T]{
		OnAdd:    func(obj T, _ bool) { observe(informer.Key(obj), obj) },
		OnUpdate: func(_, obj T) { observe(informer.Key(obj), obj) },
		OnDelete: func(d informer.Deleted[T]) { p.roster.gone(d.Key) },
	}, informer.HandlerOptions{Name: "clusters", Resync: -1})
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	// RemoveHandler first delivers the pending events. After it has returned, observe is not called any more.
	defer func() { err = objects.RemoveHandler(context.WithoutCancel(ctx), registration) }()
	select {
	case <-registration.Synced():
		p.roster.complete(true)
	case <-registration.Done(): // The factory has stopped.
		return informer.ErrStopped
	case <-ctx.Done():
		return nil
	}
	p.roster.run(ctx)
	return nil
}

// DefaultSecretLabel and DefaultSecretKey are the defaults of SecretOptions.LabelSelector and SecretOptions.Key.
const (
	DefaultSecretLabel = "multicluster.flyball.dev/kubeconfig"
	DefaultSecretKey   = "kubeconfig"
)

// SecretOptions select Secrets. Namespace is required.
type SecretOptions struct {
	// Namespace is the namespace of the Secrets.
	Namespace string
	// LabelSelector selects the Secrets. The server evaluates it, so this process does not read other Secrets. Empty
	// means DefaultSecretLabel=true.
	LabelSelector string
	// Key is the key of the kubeconfig in a Secret's data. Empty means DefaultSecretKey.
	Key string
	// Name returns the name for a Secret's cluster, or "" to ignore the Secret. Nil means the Secret's name.
	Name func(*corev1.Secret) string
	// Trusted allows kubeconfigs that run commands and read files. See the package comment.
	Trusted bool
}

// NewSecrets returns the provider of the clusters in the Secrets that o selects in local's cluster. The manager runs
// the informer for these Secrets.
//
// Errors: no namespace; an invalid selector.
func NewSecrets(local *manager.Manager, o SecretOptions) (multicluster.Provider, error) {
	if o.Namespace == "" {
		return nil, errors.New("secret provider: Options.Namespace is empty")
	}
	o.LabelSelector = cmp.Or(o.LabelSelector, DefaultSecretLabel+"=true")
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		return nil, fmt.Errorf("secret provider: Options.LabelSelector: %w", err)
	}
	o.Key = cmp.Or(o.Key, DefaultSecretKey)
	if o.Name == nil {
		o.Name = (*corev1.Secret).GetName
	}
	p := &provider{name: "secret"}
	p.find = func(ctx context.Context) error {
		recorder := local.GetEventRecorderFor("secret-provider")
		i := informer.InformerOptions{Namespaces: []string{o.Namespace}, LabelSelector: o.LabelSelector}
		return follow(ctx, p, local.Informers(), i, func(key string, s *corev1.Secret) {
			found, err := o.read(s)
			if err == nil {
				p.roster.found(ctx, key, found)
			} else if p.roster.broken(ctx, key, err) {
				recorder.Eventf(s, corev1.EventTypeWarning, "InvalidKubeconfig", "The kubeconfig cannot be used: %v",
					err)
			}
		})
	}
	return p, nil
}

// read returns the cluster of a Secret. It returns none if the options ignore the Secret.
func (o *SecretOptions) read(s *corev1.Secret) ([]multicluster.Announcement, error) {
	name := o.Name(s)
	if name == "" {
		return nil, nil
	}
	data, ok := s.Data[o.Key]
	if !ok {
		return nil, fmt.Errorf("its data has no key %q", o.Key)
	}
	k, err := readKubeconfig(data, "", !o.Trusted)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Key, err)
	}
	c, err := k.currentContext()
	if err == nil {
		err = c.err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Key, err)
	}
	return []multicluster.Announcement{{Name: name, Identity: c.identity, Config: c.config, Labels: s.Labels}}, nil
}
