package process

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/ciconfig"
	"github.com/flyball-dev/flyball/examples/operators/ci/distributor"
	"github.com/flyball-dev/flyball/examples/operators/ci/ephemeralcluster"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/examples/operators/ci/github"
	"github.com/flyball-dev/flyball/examples/operators/ci/importcleaner"
	"github.com/flyball-dev/flyball/examples/operators/ci/promotion"
	"github.com/flyball-dev/flyball/examples/operators/ci/secretrefresher"
	"github.com/flyball-dev/flyball/examples/operators/ci/standin"
	"github.com/flyball-dev/flyball/manager/metrics"
)

// New makes the fleet of the clusters, with the controllers that o asks for. o must be complete.
func New(configs map[string]*rest.Config, o *Options) (*fleet.Fleet, error) {
	registry := metrics.New()
	m := o.ManagerOptions(registry)
	m.Caches = o.caches()
	f, err := fleet.New(configs, fleet.Options{Hub: o.HubContext, Manager: m, DryRun: o.DryRun, HubResync: o.HubResync})
	if err != nil {
		return nil, err
	}
	var agent *ciconfig.Agent
	if o.ConfigDir != "" || o.JobsDir != "" {
		if agent, err = ciconfig.New(o.ConfigDir, o.JobsDir, ciconfig.Options{Interval: o.Poll}); err != nil {
			return nil, err
		}
		if err := f.Hub.Manager.Add(agent); err != nil {
			return nil, err
		}
	}
	err = errors.Join(o.addHub(f, agent, registry.Registerer()), o.addEverywhere(f))
	return f, err
}

// caches returns the caches, restricted to what the controllers need.
func (o *Options) caches() (caches []client.CacheOf) {
	if o.runs(Distributor) {
		caches = append(caches, distributor.Caches()...)
	}
	if o.runs(Refresher, Minter) {
		caches = append(caches, secretrefresher.Caches()...)
	}
	return caches
}

// addHub adds the controllers that work from the hub.
func (o *Options) addHub(f *fleet.Fleet, agent *ciconfig.Agent, r prometheus.Registerer) error {
	var wrong []error
	if o.runs(Promotion) {
		gh, err := o.github()
		if err != nil {
			return err
		}
		o.promotion.Metrics = promotion.NewMetrics()
		wrong = append(wrong, r.Register(o.promotion.Metrics), promotion.Add(f, agent, gh, o.promotion))
	}
	if o.runs(Distributor) {
		o.distributor.Metrics = distributor.NewMetrics()
		wrong = append(wrong, r.Register(o.distributor.Metrics), distributor.Add(f, agent, o.distributor))
	}
	if o.runs(Ephemeral) {
		o.ephemeral.Metrics = ephemeralcluster.NewMetrics()
		wrong = append(wrong, r.Register(o.ephemeral.Metrics), ephemeralcluster.Add(f, o.ephemeral))
	}
	if o.runs(Runner) {
		wrong = append(wrong, standin.AddRunner(f, standin.RunnerOptions{Took: o.JobsTake, Agent: agent}))
	}
	return errors.Join(wrong...)
}

// addEverywhere adds the controllers that work within each cluster.
func (o *Options) addEverywhere(f *fleet.Fleet) error {
	var wrong []error
	for _, c := range f.All() {
		if o.runs(Refresher) {
			wrong = append(wrong, secretrefresher.Add(c, o.refresher))
		}
		if o.runs(Minter) {
			wrong = append(wrong, secretrefresher.AddMinter(c, o.refresher))
		}
		if o.runs(Cleaner) {
			wrong = append(wrong, importcleaner.Add(c))
		}
		if o.runs(Importer) && c != f.Hub {
			wrong = append(wrong, standin.AddImporter(c, standin.ImporterOptions{}))
		}
	}
	return errors.Join(wrong...)
}

func (o *Options) github() (github.Client, error) {
	if o.GitHubFile != "" {
		return github.File(o.GitHubFile), nil
	}
	return github.NewHTTP(github.HTTPOptions{Endpoint: o.GitHubEndpoint, TokenFile: o.GitHubTokenFile})
}

// Run runs the program on the clusters of the kubeconfig until ctx is done, or the kubeconfig changes.
func Run(ctx context.Context, o *Options) error {
	if err := o.Complete(); err != nil {
		return err
	}
	configs, files, err := o.clusters()
	if err != nil {
		return err
	}
	f, err := New(configs, o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := f.Hub.Manager.Add(&fileWatch{files: files, interval: o.Poll, changed: stop}); err != nil {
		return err
	}
	if err := f.Run(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}
