package controller

import (
	"errors"
	"fmt"
	"time"

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
	ctrl.Manager
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

// Options configure the operator. The zero value works.
type Options struct {
	// Discovery tells how to find control planes. The zero value is providers.External.
	Discovery providers.Discovery
	// Config is the base configuration for control planes. Nil means that of the Projects' API server.
	Config *rest.Config
	// LabelSelector restricts the fleet to some Projects. All Projects are provisioned and cleaned up.
	LabelSelector string
	// PurgeTimeout is how long the deletion of a Project's content may take. After that the Project goes without it.
	// Zero means two minutes.
	PurgeTimeout time.Duration
	// ForceAfter is when finalizers are removed from objects that are still there. Zero means half of PurgeTimeout.
	ForceAfter time.Duration
	// Poll is how often to check a control plane that cannot be watched: one that is being purged, or does not answer
	// before its Project is Ready. Zero means five seconds.
	Poll time.Duration
	// RequestTimeout bounds one request to such a control plane. Zero means ten seconds.
	RequestTimeout time.Duration
	// Parallel is how many requests one purge sends at once. Zero means 16.
	Parallel int
	// Fleet are the options of the fleet. The operator sets the provider and the caches.
	Fleet multicluster.Options
}

func (o Options) withDefaults() Options {
	setDefault(&o.PurgeTimeout, 2*time.Minute)
	setDefault(&o.ForceAfter, o.PurgeTimeout/2)
	setDefault(&o.Poll, 5*time.Second)
	setDefault(&o.RequestTimeout, 10*time.Second)
	setDefault(&o.Parallel, 16)
	if o.Discovery == (providers.Discovery{}) {
		o.Discovery = providers.External()
	}
	return o
}

func setDefault[T ~int | ~int64](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
