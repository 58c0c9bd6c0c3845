package project

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/objects"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/roster"
)

// Options configure how projects are found. The zero value finds them from outside.
type Options struct {
	// Discovery is [External], [Internal], or one of them changed. The zero value is External.
	Discovery Discovery
	// Config has the credentials for control planes, and the base of External's endpoints. Its host and path are
	// replaced by the endpoint. Nil means the configuration of the local manager.
	Config *rest.Config
	// LabelSelector selects the projects. The server evaluates it, so others are not read; the provider checks the
	// answers again.
	LabelSelector string
	// Namespace restricts the provider to one namespace, if the objects are namespaced.
	Namespace string
	// Name returns the name for the cluster of an object; "" ignores the object. Nil means the object's name.
	Name func(*unstructured.Unstructured) string
}

// Provider announces the control planes of projects.
type Provider struct {
	local     *manager.Manager
	o         Options
	selector  labels.Selector
	endpoints *endpoints
	roster    roster.Roster
}

// New returns the provider of the control planes that objects of local's cluster announce.
//
// Errors: an invalid selector or template.
func New(local *manager.Manager, o Options) (*Provider, error) {
	if o.Discovery == (Discovery{}) {
		o.Discovery = External()
	}
	if o.Config == nil {
		o.Config = local.GetConfig()
	}
	if o.Name == nil {
		o.Name = (*unstructured.Unstructured).GetName
	}
	p := &Provider{local: local, o: o}
	var err error
	if p.selector, err = labels.Parse(o.LabelSelector); err != nil {
		return nil, fmt.Errorf("project provider: Options.LabelSelector: %w", err)
	}
	if p.endpoints, err = newEndpoints(o.Discovery.Endpoint, o.Config); err != nil {
		return nil, fmt.Errorf("project provider: Options.Discovery: %w", err)
	}
	return p, nil
}

// Name implements the optional method of multicluster.Provider.
func (p *Provider) Name() string { return "project" }

// Health names the projects that cannot be announced, and why. The status of a cluster reports that its control plane
// is not ready or does not answer.
func (p *Provider) Health() error { return p.roster.Health() }

// Run implements multicluster.Provider. The local manager runs the informer.
func (p *Provider) Run(ctx context.Context, fleet multicluster.Fleet) error {
	observe := func(key string, obj *unstructured.Unstructured) {
		if found, err := p.announce(obj); err != nil {
			p.roster.Broken(ctx, key, err)
		} else {
			p.roster.Found(ctx, key, found)
		}
	}
	o := informer.InformerOptions{Kind: p.o.Discovery.Kind, LabelSelector: p.o.LabelSelector}
	if p.o.Namespace != "" {
		o.Namespaces = []string{p.o.Namespace}
	}
	return objects.Follow(ctx, p.local.Informers(), o, &p.roster, fleet, observe)
}

// announce returns the cluster of an object, or none if the options ignore the object.
func (p *Provider) announce(obj *unstructured.Unstructured) ([]multicluster.Announcement, error) {
	name := p.o.Name(obj)
	if name == "" || !p.selector.Matches(labels.Set(obj.GetLabels())) {
		return nil, nil
	}
	notReady := p.notReady(obj)
	config, err := p.ConfigFor(obj)
	if err != nil && notReady == "" {
		return nil, err
	}
	return []multicluster.Announcement{{
		Name: name, Identity: string(obj.GetUID()), Config: config, Labels: obj.GetLabels(), NotReady: notReady,
	}}, nil
}

// ConfigFor returns the configuration for the control plane of an object, ready or not: for code that prepares the
// control plane, or cleans it up.
//
// Errors: the template makes no URL of this object.
func (p *Provider) ConfigFor(obj *unstructured.Unstructured) (*rest.Config, error) {
	host, err := p.endpoints.url(endpoint{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: string(obj.GetUID()), Object: obj.Object,
	})
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(p.o.Config)
	config.Host, config.APIPath = host, ""
	return config, nil
}

// notReady returns why a control plane cannot be used, or "" if it can.
func (p *Provider) notReady(obj *unstructured.Unstructured) string {
	if obj.GetDeletionTimestamp() != nil {
		return "it is being deleted"
	}
	// A missing or malformed condition means not ready.
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok || condition["type"] != p.o.Discovery.ReadyCondition {
			continue
		}
		if condition["status"] == string(metav1.ConditionTrue) {
			return ""
		}
		why := fmt.Sprintf("its condition %s is %v", condition["type"], condition["status"])
		for _, field := range []string{"reason", "message"} {
			if text, _ := condition[field].(string); text != "" {
				why += ": " + text
			}
		}
		return why
	}
	return "it has no condition " + p.o.Discovery.ReadyCondition
}
