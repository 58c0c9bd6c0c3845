package providers

import (
	"fmt"
	"net/url"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

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
