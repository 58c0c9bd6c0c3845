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

// ProjectOptions configure how projects are found. The zero value finds them as [External] describes.
type ProjectOptions struct {
	// Discovery is [External], [Internal], or a modified copy of one of them. The zero value means External.
	Discovery Discovery
	// Config has the credentials for control planes. Its host is the base of External's endpoints. The endpoint of a
	// control plane replaces its host and path. Nil means the configuration of the local manager.
	Config *rest.Config
	// LabelSelector selects the projects. The server evaluates it, so this process does not read other projects. The
	// provider evaluates it again for each object.
	LabelSelector string
	// Namespace restricts the provider to one namespace, if the objects are namespaced.
	Namespace string
	// Name returns the name for an object's cluster, or "" to ignore the object. Nil means the object's name.
	Name func(*unstructured.Unstructured) string
}

// Projects is the provider of the control planes of projects.
type Projects struct {
	*provider
	o         ProjectOptions
	selector  labels.Selector
	endpoints *endpoints
}

// NewProjects returns the provider of the control planes that objects in local's cluster announce. The manager runs the
// informer for these objects.
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

// announce returns the cluster of an object. It returns none if the options ignore the object.
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

// ConfigFor returns the configuration for the control plane of an object, even if it is not ready. Code that prepares
// the control plane or cleans it up uses it.
//
// Errors: the template does not produce the URL of a server.
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

// Discovery describes how to find control planes.
type Discovery struct {
	// Kind is the kind of the objects that announce control planes.
	Kind schema.GroupVersionKind
	// ReadyCondition is the type of the condition, in an object's status.conditions, that must be True for a control
	// plane to be used.
	ReadyCondition string
	// Endpoint is a template (text/template) of the URL of a control plane. Its fields are Base, which is the URL of
	// the server of ProjectOptions.Config, without a slash at the end; Name, Namespace and UID of the object; and
	// Object, the whole object ({{.Object.status.endpoint}}, for control planes that move).
	Endpoint string
}

// endpoint is the data of an endpoint template; see [Discovery].
type endpoint struct {
	Base, Name, Namespace, UID string
	Object                     map[string]any
}

// External finds control planes from outside their cluster: the API server that has the Projects forwards a path to
// each of them.
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

// Internal finds control planes from inside the cluster in which they run, by their Services.
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

// endpoints makes the URLs of control planes.
type endpoints struct {
	template *template.Template
	base     string
}

// newEndpoints parses a template and checks that it makes a URL.
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
		err = nil // The template uses fields of the object, which the example does not have.
	}
	return e, err
}

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
