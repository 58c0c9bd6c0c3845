// Package namespace is the provider of clusters that are namespaces of the local cluster: small tenants, or a fleet for
// experiments.
//
// The caches of such a cluster hold only objects of its namespace, and all cluster-scoped objects. Its client makes no
// request that names another namespace. That prevents mistakes, but is no security boundary: a live list over all
// namespaces is not stopped.
//
// A namespace that is being deleted stays a cluster until it is gone, so that controllers can remove their finalizers
// in it. If it is created again under the same name, it is another cluster.
package namespace

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/objects"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/roster"
)

// Options select the namespaces. The zero value selects all.
type Options struct {
	// LabelSelector selects them, evaluated by the server.
	LabelSelector string
	// Name returns the name for the cluster of a namespace; "" ignores the namespace. Nil means the namespace's name.
	Name func(*metav1.PartialObjectMetadata) string
}

// Provider announces namespaces as clusters.
type Provider struct {
	local  *manager.Manager
	o      Options
	roster roster.Roster
}

// New returns the provider of the namespaces of local's cluster that o describes.
//
// Errors: an invalid selector.
func New(local *manager.Manager, o Options) (*Provider, error) {
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		return nil, fmt.Errorf("namespace provider: Options.LabelSelector: %w", err)
	}
	if o.Name == nil {
		o.Name = func(n *metav1.PartialObjectMetadata) string { return n.Name }
	}
	return &Provider{local: local, o: o}, nil
}

// Name implements the optional method of multicluster.Provider.
func (p *Provider) Name() string { return "namespace" }

// Health names the namespaces that the fleet has rejected, and why.
func (p *Provider) Health() error { return p.roster.Health() }

// Run implements multicluster.Provider. The local manager runs the informer.
func (p *Provider) Run(ctx context.Context, fleet multicluster.Fleet) error {
	observe := func(key string, n *metav1.PartialObjectMetadata) {
		var found []multicluster.Announcement
		if name := p.o.Name(n); name != "" {
			found = append(found, multicluster.Announcement{
				Name: name, Identity: string(n.UID), Config: confined(p.local.GetConfig(), n.Name), Namespace: n.Name,
				Labels: n.Labels,
			})
		}
		p.roster.Found(ctx, key, found)
	}
	o := informer.InformerOptions{
		Kind:          corev1.SchemeGroupVersion.WithKind("Namespace"),
		LabelSelector: p.o.LabelSelector,
	}
	return objects.Follow(ctx, p.local.Informers(), o, &p.roster, fleet, observe)
}

// confined returns a configuration whose requests stay in a namespace.
func confined(config *rest.Config, namespace string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(
		func(next http.RoundTripper) http.RoundTripper { return &confinement{namespace: namespace, next: next} },
	)
	return config
}

// confinement is a transport that rejects requests about other namespaces.
type confinement struct {
	namespace string
	next      http.RoundTripper
}

// WrappedRoundTripper returns the transport below, for client-go.
func (c *confinement) WrappedRoundTripper() http.RoundTripper { return c.next }

// RoundTrip implements http.RoundTripper.
func (c *confinement) RoundTrip(r *http.Request) (*http.Response, error) {
	if other, named := namespaceOf(r.URL.Path); named && other != c.namespace {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("the cluster is namespace %q: no access to namespace %q", c.namespace, other)
	}
	return c.next.RoundTrip(r)
}

// namespaceOf returns the namespace in the path of a request: …/namespaces/NAME and everything below.
func namespaceOf(path string) (string, bool) {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if part == "namespaces" && i+1 < len(parts) && parts[i+1] != "" {
			return parts[i+1], true
		}
	}
	return "", false
}
