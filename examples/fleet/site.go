package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/multicluster/providers"
)

//go:embed resourcemanager.miloapis.com_projects.yaml
var definition []byte

// site is a cluster with Projects, together with their control planes. All are API servers in this process. The host of
// a request selects the server.
type site struct {
	hub client.Client

	mu      sync.Mutex
	servers map[string]*localapi.Server
	// away holds the hosts that refuse connections.
	away map[string]bool
}

const hubHost = "hub"

// newSite creates the cluster, without Projects.
func newSite(ctx context.Context) (*site, error) {
	s := &site{servers: map[string]*localapi.Server{}, away: map[string]bool{}}
	if err := s.serve(hubHost); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	err := clientscheme.AddToScheme(scheme)
	addToScheme(scheme)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	if s.hub, err = client.New(s.config(hubHost), client.Options{Scheme: scheme}); err != nil {
		return nil, errors.Join(err, s.close())
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(definition, &crd.Object); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err := s.hub.Create(ctx, crd); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// discovery finds the control plane of a Project at the host of the same name.
func discovery() providers.Discovery {
	d := providers.External()
	d.Endpoint = "http://{{.Name}}"
	return d
}

func (s *site) config(host string) *rest.Config {
	return &rest.Config{Host: "http://" + host, Transport: s, QPS: -1}
}

// RoundTrip implements http.RoundTripper.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	server, away := s.servers[r.URL.Host], s.away[r.URL.Host]
	s.mu.Unlock()
	switch {
	case away:
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	case server == nil:
		return nil, fmt.Errorf("there is no host %q", r.URL.Host)
	}
	return server.RESTConfig().Transport.RoundTrip(r)
}

func (s *site) serve(host string) error {
	server, err := localapi.New(localapi.Options{NoKubernetesService: true})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[host] = server
	return nil
}

func (s *site) cut(host string, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away[host] = away
}

// add creates a Project and its control plane, and marks it as ready.
func (s *site) add(ctx context.Context, name string) error {
	if err := s.serve(name); err != nil {
		return err
	}
	p := projectOf(name)
	if err := s.hub.Create(ctx, p); err != nil {
		return err
	}
	conditions.SetState(&p.Status.Conditions, p.Generation, conditions.IsReady, "Serving", "The control plane answers")
	return s.hub.Status().Update(ctx, p)
}

func projectOf(name string) *Project {
	return &Project{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// in returns a client of a cluster.
func (s *site) in(host string) (client.Client, error) {
	return client.New(s.config(host), client.Options{})
}

// text returns the content of the config map default/motd in a cluster, or "" if it does not exist.
func (s *site) text(ctx context.Context, host string) (string, error) {
	c, err := s.in(host)
	if err != nil {
		return "", err
	}
	m := motd()
	err = c.Get(ctx, client.ObjectKeyFromObject(m), m)
	return m.Data["text"], client.IgnoreNotFound(err)
}

// motd returns the config map that the story is about.
func motd() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "motd",
			Labels: map[string]string{originalLabel: "true"},
		},
	}
}

func (s *site) close() error {
	var errs []error
	for _, server := range s.servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(errs...)
}

// groupVersion is the group and version of Project.
var groupVersion = schema.GroupVersion{Group: "resourcemanager.miloapis.com", Version: "v1alpha1"}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster

// Project is a cluster of the fleet, with the fields of a real one that the fleet reads.
type Project struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            ProjectStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:generate=true

// ProjectStatus is the observed state of a Project.
type ProjectStatus struct {
	// Conditions has the type Ready: the control plane answers.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true

// ProjectList is a list of Projects.
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Project `json:"items"`
}

// addToScheme registers the type.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Project{}, &ProjectList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
