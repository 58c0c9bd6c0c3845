package providers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	*provider
	o         ProjectOptions
	selector  labels.Selector
	endpoints *endpoints
}

// NewProjects returns the provider of the control planes that objects of local's cluster announce. The manager runs its
// informer.
//
// Errors: an invalid selector or template, or a Discovery without a Kind or a ReadyCondition.
func NewProjects(local *manager.Manager, o ProjectOptions) (*Projects, error) {
	if o.Discovery == (Discovery{}) {
		o.Discovery = External()
	}
	if o.Discovery.Kind.Kind == "" || o.Discovery.ReadyCondition == "" {
		return nil, errors.New("project provider: Options.Discovery has no Kind or no ReadyCondition: " +
			"change what External or Internal returns")
	}
	if o.Config == nil {
		o.Config = local.GetConfig()
	}
	if o.Name == nil {
		o.Name = (*unstructured.Unstructured).GetName
	}
	p := &Projects{provider: &provider{name: "project"}, o: o}
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
		return follow(ctx, p.provider, local.Informers(), i, func(key string, obj *unstructured.Unstructured) {
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

// Discovery says how to find control planes.
type Discovery struct {
	// Kind is the kind of the objects.
	Kind schema.GroupVersionKind
	// ReadyCondition is the type of the condition in their status.conditions that must be True.
	ReadyCondition string
	// Endpoint is a template (text/template) of the URL of a control plane. Its fields are Base, the URL of the server
	// that ProjectOptions.Config leads to, without a slash at its end; Name, Namespace and UID of the object; and
	// Object, the whole object ({{.Object.status.endpoint}}, for control planes that move).
	Endpoint string
}

// endpoint is the data of an endpoint template; see [Discovery].
type endpoint struct {
	Base, Name, Namespace, UID string
	Object                     map[string]any
}

// External finds control planes from outside, behind the path that the API server of the Projects routes to them.
func External() Discovery {
	return Discovery{
		Kind: schema.GroupVersionKind{
			Group: "resourcemanager.miloapis.com", Version: "v1alpha1",
			Kind: "Project",
		},
		ReadyCondition: "Ready",
		Endpoint:       "{{.Base}}/apis/resourcemanager.miloapis.com/v1alpha1/projects/{{.Name}}/control-plane",
	}
}

// Internal finds control planes from inside the cluster that they run in, by their Services.
func Internal() Discovery {
	return Discovery{
		Kind: schema.GroupVersionKind{
			Group: "infrastructure.miloapis.com", Version: "v1alpha1",
			Kind: "ProjectControlPlane",
		},
		ReadyCondition: "ControlPlaneReady",
		Endpoint:       "https://milo-apiserver.project-{{.Name}}.svc.cluster.local:6443",
	}
}

// endpoints makes URLs.
type endpoints struct {
	template *template.Template
	base     string
}

// newEndpoints checks that the template gives a URL.
func newEndpoints(text string, config *rest.Config) (*endpoints, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the address of the server: %w", err)
	}
	t, err := template.New("Endpoint").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	e := &endpoints{template: t, base: strings.TrimSuffix(base.String(), "/")}
	if _, err = e.url(endpoint{Name: "name", Namespace: "namespace", UID: "uid"}); err != nil &&
		strings.Contains(err.Error(), "no entry for key") {
		err = nil // Errors about fields show up with the first object.
	}
	return e, err
}

// url returns the URL for an object.
func (e *endpoints) url(o endpoint) (string, error) {
	o.Base = e.base
	var b strings.Builder
	if err := e.template.Execute(&b, o); err != nil {
		return "", fmt.Errorf("endpoint: %w", err)
	}
	u, err := url.Parse(b.String())
	if err != nil {
		return "", fmt.Errorf("endpoint: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("endpoint: %q is not the URL of a server", b.String())
	}
	return b.String(), nil
}
