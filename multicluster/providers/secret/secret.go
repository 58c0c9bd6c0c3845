// Package secret is the provider of clusters whose kubeconfigs are in Secrets of the local cluster: each Secret with
// the label is a cluster, named after it, with its labels, reached by the current context.
//
// If a Secret's kubeconfig is invalid, its cluster stays as it was until the Secret is repaired or deleted. Health and
// an event on the Secret report the error.
//
// Anybody who may write such a Secret decides where this process connects to. By default they can do no more than that:
// the provider rejects a kubeconfig that names a command, or a file of this process. It could make the process run
// something, or send its own token to another server.
package secret

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/kubeconf"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/objects"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/roster"
)

// DefaultLabel and DefaultKey are the defaults of Options.LabelSelector and Options.Key.
const (
	DefaultLabel = "multicluster.flyball.dev/kubeconfig"
	DefaultKey   = "kubeconfig"
)

// Options select the Secrets. Namespace is required.
type Options struct {
	// Namespace is where the Secrets are.
	Namespace string
	// LabelSelector selects them. The server evaluates it, so other Secrets are not read. Empty means
	// DefaultLabel=true.
	LabelSelector string
	// Key is where in a Secret's data the kubeconfig is. Empty means DefaultKey.
	Key string
	// Name returns the name for the cluster of a Secret; "" ignores the Secret. Nil means the Secret's name.
	Name func(*corev1.Secret) string
	// Trusted allows kubeconfigs that run commands and read files. See the package comment.
	Trusted bool
}

// Provider announces the clusters of Secrets.
type Provider struct {
	local  *manager.Manager
	o      Options
	roster roster.Roster
}

// New returns the provider of the Secrets of local's cluster that o describes.
//
// Errors: no namespace, or a selector that is none.
func New(local *manager.Manager, o Options) (*Provider, error) {
	if o.Namespace == "" {
		return nil, errors.New("secret provider: Options.Namespace is empty")
	}
	if o.LabelSelector == "" {
		o.LabelSelector = DefaultLabel + "=true"
	}
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		return nil, fmt.Errorf("secret provider: Options.LabelSelector: %w", err)
	}
	if o.Key == "" {
		o.Key = DefaultKey
	}
	if o.Name == nil {
		o.Name = func(s *corev1.Secret) string { return s.Name }
	}
	return &Provider{local: local, o: o}, nil
}

// Name implements the optional method of multicluster.Provider.
func (p *Provider) Name() string { return "secret" }

// Health reports which Secrets cannot be used, and why.
func (p *Provider) Health() error { return p.roster.Health() }

// Run implements multicluster.Provider. The local manager runs the informer.
func (p *Provider) Run(ctx context.Context, fleet multicluster.Fleet) error {
	recorder := p.local.GetEventRecorderFor("secret-provider")
	observe := func(key string, s *corev1.Secret) {
		found, err := p.read(s)
		if err == nil {
			p.roster.Found(ctx, key, found)
		} else if p.roster.Broken(ctx, key, err) {
			recorder.Eventf(s, corev1.EventTypeWarning, "InvalidKubeconfig", "The kubeconfig cannot be used: %v", err)
		}
	}
	o := informer.InformerOptions{Namespaces: []string{p.o.Namespace}, LabelSelector: p.o.LabelSelector}
	return objects.Follow(ctx, p.local.Informers(), o, &p.roster, fleet, observe)
}

// read returns the cluster of a Secret, or none if the options ignore the Secret.
func (p *Provider) read(s *corev1.Secret) ([]multicluster.Announcement, error) {
	name := p.o.Name(s)
	if name == "" {
		return nil, nil
	}
	data, ok := s.Data[p.o.Key]
	if !ok {
		return nil, fmt.Errorf("its data has no key %q", p.o.Key)
	}
	contexts, current, err := kubeconf.Read(data, kubeconf.Source{Untrusted: !p.o.Trusted})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.o.Key, err)
	}
	i := slices.IndexFunc(contexts, func(c kubeconf.Context) bool { return c.Name == current })
	if i < 0 {
		return nil, fmt.Errorf("%s: its current context %q does not exist", p.o.Key, current)
	}
	c := contexts[i]
	if c.Err != nil {
		return nil, fmt.Errorf("%s: %w", p.o.Key, c.Err)
	}
	return []multicluster.Announcement{{Name: name, Identity: c.Identity, Config: c.Config, Labels: s.Labels}}, nil
}
