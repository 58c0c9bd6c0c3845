package controller

import (
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers/project"
)

// Options are the operator's. The zero value works.
type Options struct {
	// Discovery says how control planes are found. The zero value is project.External.
	Discovery project.Discovery
	// Config is what control planes are reached with. Nil: as the API server of the Projects.
	Config *rest.Config
	// LabelSelector restricts the fleet to some Projects. All of them are provisioned and cleared away.
	LabelSelector string
	// PurgeTimeout is how long the contents of a deleted Project may take to go. After that the Project goes without them. Zero means
	// two minutes.
	PurgeTimeout time.Duration
	// ForceAfter is when finalizers are taken off what is still there. Zero means half of PurgeTimeout.
	ForceAfter time.Duration
	// Poll is how often a control plane is looked at that cannot be watched: one that is being purged, or does not answer before its
	// Project is Ready. Zero means five seconds.
	Poll time.Duration
	// RequestTimeout bounds one request to such a control plane. Zero means ten seconds.
	RequestTimeout time.Duration
	// Parallel is how many requests one purge makes at once. Zero means 16.
	Parallel int
	// Fleet are the options of the fleet, whose provider and caches are the operator's.
	Fleet multicluster.Options
}

func (o Options) withDefaults() Options {
	setDefault(&o.PurgeTimeout, 2*time.Minute)
	setDefault(&o.ForceAfter, o.PurgeTimeout/2)
	setDefault(&o.Poll, 5*time.Second)
	setDefault(&o.RequestTimeout, 10*time.Second)
	setDefault(&o.Parallel, 16)
	if o.Discovery == (project.Discovery{}) {
		o.Discovery = project.External()
	}
	return o
}

func setDefault[T ~int | ~int64](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
