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

// DefaultSecretLabel and DefaultSecretKey are the defaults of SecretOptions.LabelSelector and SecretOptions.Key.
const (
	DefaultSecretLabel = "multicluster.flyball.dev/kubeconfig"
	DefaultSecretKey   = "kubeconfig"
)

// SecretOptions select Secrets. Namespace is required.
type SecretOptions struct {
	// Namespace is where the Secrets are.
	Namespace string
	// LabelSelector selects them. The server evaluates it, so other Secrets are not read. Empty means
	// DefaultSecretLabel=true.
	LabelSelector string
	// Key is where in a Secret's data the kubeconfig is. Empty means DefaultSecretKey.
	Key string
	// Name returns the name for the cluster of a Secret; "" ignores the Secret. Nil means the Secret's name.
	Name func(*corev1.Secret) string
	// Trusted allows kubeconfigs that run commands and read files. See the package comment.
	Trusted bool
}

// NewSecrets returns the provider of the Secrets of local's cluster that o describes. The manager runs its informer.
//
// Errors: no namespace, or a selector that is none.
func NewSecrets(local *manager.Manager, o SecretOptions) (*Provider, error) {
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
	p := &Provider{name: "secret"}
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

// read returns the cluster of a Secret, or none if the options ignore the Secret.
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
