package process

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

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
	"github.com/flyball-dev/flyball/examples/operators/internal/program"
	"github.com/flyball-dev/flyball/internal/kubeconfig"
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
	err = errors.Join(o.addHub(f, agent, registry), o.addEverywhere(f))
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

// Main runs the program with a command line until ctx is done or the kubeconfig changes.
func Main(ctx context.Context, args []string, stderr io.Writer) error {
	o := NewOptions()
	if err := program.Parse(o.Flags, o.addOwnFlags, args, stderr); err != nil {
		return err
	}
	defer o.StartLogging(stderr)()
	return Run(ctx, o)
}

// clusters returns the contexts of the kubeconfig as clusters, by name, and the present state of the files that it is
// read from. If there is no context with the hub's name, the hub is the cluster that the program runs in.
func (o *Options) clusters() (configs map[string]*rest.Config, files *watchedFiles, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	files = watch(rules.GetLoadingPrecedence())
	raw, err := rules.Load()
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	configs = map[string]*rest.Config{}
	var wrong []error
	for name := range raw.Contexts {
		if err := kubeconfig.Check(raw, name); err != nil {
			wrong = append(wrong, err)
			continue
		}
		config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, &clientcmd.ConfigOverrides{},
			rules).ClientConfig()
		if err != nil {
			wrong = append(wrong, fmt.Errorf("kubeconfig context %s: %w", name, err))
			continue
		}
		configs[name] = o.tuned(config)
	}
	if configs[o.HubContext] == nil && len(wrong) == 0 {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, nil, fmt.Errorf("the kubeconfig has no context %s, and this is no Pod: %w", o.HubContext, err)
		}
		configs[o.HubContext] = o.tuned(config)
	}
	return configs, files, errors.Join(wrong...)
}

// tuned returns a config with the limits that the flags set.
func (o *Options) tuned(config *rest.Config) *rest.Config {
	config.QPS, config.Burst, config.UserAgent = o.QPS, o.Burst, o.Name
	return config
}

// errKubeconfigChanged is the error that ends the process when the kubeconfig changes.
var errKubeconfigChanged = errors.New("the kubeconfig has changed")

// watchedFiles holds files and a digest of their contents. A missing file counts as empty.
type watchedFiles struct {
	names  []string
	before [sha256.Size]byte
}

func watch(names []string) *watchedFiles {
	f := &watchedFiles{names: names}
	f.before = f.digest()
	return f
}

func (f *watchedFiles) digest() [sha256.Size]byte {
	h := sha256.New()
	for _, name := range f.names {
		text, _ := os.ReadFile(name)
		fmt.Fprintf(h, "%q %q\n", name, text)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// fileWatch ends the process when files change. It compares their contents, because the files of a Secret's volume are
// behind symbolic links that are replaced.
type fileWatch struct {
	files    *watchedFiles
	interval time.Duration
	changed  context.CancelCauseFunc
}

// Name is the name in the manager.
func (w *fileWatch) Name() string { return "kubeconfig" }

// NeedLeaderElection returns false: followers end, too.
func (w *fileWatch) NeedLeaderElection() bool { return false }

// Run checks the files at each interval until ctx is done.
func (w *fileWatch) Run(ctx context.Context) error {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if w.files.digest() != w.files.before {
				klog.FromContext(ctx).Info("Kubeconfig changed: ending, to be started anew")
				w.changed(errKubeconfigChanged)
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}
