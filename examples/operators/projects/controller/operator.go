package controller

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers"
)

// Name is the name of the operator in its events, its lease and its manifests.
const Name = "project-operator"

// NewScheme returns a scheme of the types that the operator reads and writes, in both places.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(corev1.AddToScheme(scheme), api.AddToScheme(scheme), infrastructure.AddToScheme(scheme))
}

// Operator is a manager of the cluster with the Projects, and the fleet of their control planes, which it runs.
type Operator struct {
	*ctrl.Manager
	Fleet *multicluster.Manager
}

// New makes the operator. config is for the API server of the Projects. New sets the scheme of base.
func New(config *rest.Config, base ctrl.Options, o Options) (*Operator, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	base.Informers.Scheme = scheme
	mgr, err := ctrl.NewManager(config, base)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	provider, err := providers.NewProjects(mgr,
		providers.ProjectOptions{Discovery: o.Discovery, Config: o.Config, LabelSelector: o.LabelSelector})
	if err != nil {
		return nil, err
	}
	o.Fleet.Providers = append(o.Fleet.Providers, provider)
	o.Fleet.Caches = append(o.Fleet.Caches, client.CacheOf{
		Object: &corev1.ConfigMap{}, Informer: informer.InformerOptions{FieldSelector: "metadata.name=" + infoName},
	})
	fleet, err := multicluster.New(mgr, o.Fleet)
	if err != nil {
		return nil, err
	}
	projects := &projectReconciler{
		Client: mgr.GetClient(), options: o, provider: provider,
		recorder: mgr.GetEventRecorderFor(Name),
	}
	if err := projects.setup(mgr); err != nil {
		return nil, fmt.Errorf("projects: %w", err)
	}
	if err := (tenantReconciler{}).setup(fleet); err != nil {
		return nil, fmt.Errorf("tenants: %w", err)
	}
	return &Operator{Manager: mgr, Fleet: fleet}, nil
}
