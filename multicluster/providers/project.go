package providers

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
)

// ProjectOptions configure how projects are found. The zero value finds them from outside.
type ProjectOptions struct {
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

// Projects is the provider of the control planes of projects.
type Projects struct {
	*Provider
	o         ProjectOptions
	selector  labels.Selector
	endpoints *endpoints
}

// NewProjects returns the provider of the control planes that objects of local's cluster announce. The manager runs its
// informer.
//
// Errors: an invalid selector or template.
func NewProjects(local *manager.Manager, o ProjectOptions) (*Projects, error) {
	if o.Discovery == (Discovery{}) {
		o.Discovery = External()
	}
	if o.Config == nil {
		o.Config = local.GetConfig()
	}
	if o.Name == nil {
		o.Name = (*unstructured.Unstructured).GetName
	}
	p := &Projects{Provider: &Provider{name: "project"}, o: o}
	var err error
	if p.selector, err = labels.Parse(o.LabelSelector); err != nil {
		return nil, fmt.Errorf("project provider: Options.LabelSelector: %w", err)
	}
	if p.endpoints, err = newEndpoints(o.Discovery.Endpoint, o.Config); err != nil {
		return nil, fmt.Errorf("project provider: Options.Discovery: %w", err)
	}
	p.find = func(ctx context.Context) error {
		i := informer.InformerOptions{Kind: o.Discovery.Kind, LabelSelector: o.LabelSelector}
		if o.Namespace != "" {
			i.Namespaces = []string{o.Namespace}
		}
		return follow(ctx, p.Provider, local.Informers(), i, func(key string, obj *unstructured.Unstructured) {
			if found, err := p.announce(obj); err != nil {
				p.roster.broken(ctx, key, err)
			} else {
				p.roster.found(ctx, key, found)
			}
		})
	}
	return p, nil
}

// announce returns the cluster of an object, or none if the options ignore the object.
func (p *Projects) announce(obj *unstructured.Unstructured) ([]multicluster.Announcement, error) {
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
func (p *Projects) ConfigFor(obj *unstructured.Unstructured) (*rest.Config, error) {
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
func (p *Projects) notReady(obj *unstructured.Unstructured) string {
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
