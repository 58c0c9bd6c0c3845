package controller

import (
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers"
)

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
