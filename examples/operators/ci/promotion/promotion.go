package promotion

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ciconfig"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/examples/operators/ci/github"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// The names of the controllers: of tags, of new configuration, of jobs.
const (
	Name        = "promotion-reconciler"
	ConfigName  = "promotion-config"
	CreatorName = "promotion-job-creator"
)

// JobNamespace is the namespace of ProwJobs.
const JobNamespace = "ci"

// Options configure the controllers. The zero value works.
type Options struct {
	// Ignore selects tags to ignore: those whose "namespace/stream:tag" matches one of the expressions.
	Ignore []*regexp.Regexp
	// Since is the age beyond which a tag is ignored. Zero means 15 days.
	Since time.Duration
	// Workers and CreatorWorkers are how many tags and jobs are worked on at once. Zero means 100 and 10.
	Workers, CreatorWorkers int
	// Metrics count the jobs. Nil counts nothing.
	Metrics *Metrics
}

func (o Options) withDefaults() Options {
	o.Since = cmp.Or(o.Since, 15*24*time.Hour)
	o.Workers, o.CreatorWorkers = cmp.Or(o.Workers, 100), cmp.Or(o.CreatorWorkers, 10)
	return o
}

func (o *Options) ignores(tag imagestreamtag.Ref) bool {
	return slices.ContainsFunc(o.Ignore, func(e *regexp.Regexp) bool { return e.MatchString(tag.String()) })
}

// promoter is what the controllers share.
type promoter struct {
	hub    client.Client
	agent  *ciconfig.Agent
	github github.Client
	o      Options
	wanted *source.Output[Job]
}

// Add adds the controllers to the hub of the fleet. The caller runs agent.
func Add(f *fleet.Fleet, agent *ciconfig.Agent, gh github.Client, o Options) error {
	p := &promoter{
		hub: f.Hub.Client, agent: agent, github: gh, o: o.withDefaults(),
		wanted: source.NewOutput[Job]("promotion"),
	}
	m := f.Hub.Manager
	streams, err := informer.For[*api.ImageStream](m.Informers())
	if err != nil {
		return err
	}
	tags := source.Kind(streams,
		imagestreamtag.Handler(func(_ context.Context, tag imagestreamtag.Ref) []reconcile.Request {
			if p.o.ignores(tag) {
				return nil
			}
			return []reconcile.Request{tag.Request()}
		}))
	if err := add(m, Name, reconcile.Func[reconcile.Request](p.reconcileTag), p.o.Workers, tags); err != nil {
		return err
	}
	configured := ciconfig.Added(agent, ciconfig.ByPromotedTag,
		func(_ context.Context, key string) []string { return []string{key} })
	if err := add(m, ConfigName, reconcile.Func[string](p.reconcileConfig), p.o.CreatorWorkers,
		configured); err != nil {
		return err
	}
	return add(m, CreatorName, reconcile.Func[Job](p.reconcileJob), p.o.CreatorWorkers, reconcile.Source[Job](p.wanted))
}

// add adds a controller with one source.
func add[K comparable](m *manager.Manager, name string, r reconcile.Reconciler[K], workers int,
	s reconcile.Source[K],
) error {
	c := reconcile.New(name, r, reconcile.Options[K]{Workers: workers, Metrics: m.QueueMetrics(), Timeout: time.Minute})
	if err := c.Watch(s); err != nil {
		return err
	}
	return m.Add(c)
}
