package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/metrics"
)

// managerFlags are the flags of flyball manager. Where kube-controller-manager has a flag, ours has its name, meaning and
// default, but for those named in the comments.
type managerFlags struct {
	kubeconfig, context, master string
	controllers                 []string
	qps                         float32
	burst                       int
	contentType                 string
	process                     processFlags
	tuning                      controllers.Options
	manager                     manager.Options
}

func newManager() *cobra.Command {
	f := &managerFlags{}
	c := &cobra.Command{
		Use:   "manager",
		Short: "Run the controllers against a cluster, beside or instead of kube-controller-manager's own",
		Long: `Run the controllers against a cluster, beside or instead of kube-controller-manager's own. Switch the same ones off there
(--controllers=*,-deployment,-replicaset,-endpoint,-endpointslice,-garbagecollector): two controllers of one kind get in each other's way.

The first Ctrl-C or SIGTERM stops: work in flight is finished, the lease released, and the exit code is 0. The second ends at once.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.add(c.Flags())
	return c
}

func (f *managerFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig file; empty: $KUBECONFIG, then ~/.kube/config, then the service account of the Pod this runs in")
	fs.StringVar(&f.context, "context", "", "the context of the kubeconfig; empty: its current one")
	fs.StringVar(&f.master, "master", "", "the address of the API server; it overrides the one in the kubeconfig")
	fs.StringSliceVar(&f.controllers, "controllers", []string{"*"}, "the controllers to run: '*' is all that are on by default, 'foo' is foo, '-foo' is not foo; the first that names one wins. All: "+strings.Join(knownNames(), ", "))
	fs.Float32Var(&f.qps, "kube-api-qps", 20, "requests to the API server per second; 0 is the default, negative is no limit")
	fs.IntVar(&f.burst, "kube-api-burst", 30, "requests to the API server that may come at once")
	fs.StringVar(&f.contentType, "kube-api-content-type", runtime.ContentTypeProtobuf, "the content type of requests to the API server")
	f.process.add(fs)
	fs.DurationVar(&f.manager.GracefulTimeout, "controller-shutdown-timeout", 10*time.Second, "how long work in flight may go on after the stop")

	l := &f.manager.LeaderElection
	fs.BoolVar(&l.Enabled, "leader-elect", true, "work only while holding the lease")
	fs.DurationVar(&l.LeaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long the others wait for a leader that does not renew")
	fs.DurationVar(&l.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long the leader tries to renew before it stops to work")
	fs.DurationVar(&l.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "the time between two tries")
	fs.StringVar(&l.Name, "leader-elect-resource-name", "flyball-manager", "the name of the lease")
	fs.StringVar(&l.Namespace, "leader-elect-resource-namespace", "kube-system", "the namespace of the lease")

	t := &f.tuning
	fs.IntVar(&t.Deployment.Workers, "concurrent-deployment-syncs", 5, "how many Deployments are synced at once")
	fs.IntVar(&t.ReplicaSet.Workers, "concurrent-replicaset-syncs", 5, "how many ReplicaSets are synced at once")
	fs.IntVar(&t.Endpoints.Workers, "concurrent-endpoint-syncs", 5, "how many Services' Endpoints are synced at once")
	fs.IntVar(&t.EndpointSlice.Workers, "concurrent-service-endpoint-syncs", 5, "how many Services' EndpointSlices are synced at once")
	fs.IntVar(&t.EndpointSlice.MaxEndpointsPerSlice, "max-endpoints-per-slice", 100, "how many endpoints are put into one EndpointSlice, 1 to 1000; fewer mean more slices and less to send for each change")
	fs.IntVar(&t.GarbageCollector.Workers, "concurrent-gc-syncs", 20, "how many objects the garbage collector looks at at once")
	fs.DurationVar(&t.Endpoints.BatchPeriod, "endpoint-updates-batch-period", 0, "how long changes of pods are gathered before Endpoints are written")
	fs.DurationVar(&t.EndpointSlice.BatchPeriod, "endpointslice-updates-batch-period", 0, "how long changes of pods are gathered before EndpointSlices are written")
	logging := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logging)
	fs.AddGoFlag(logging.Lookup("v"))
	fs.AddGoFlag(logging.Lookup("vmodule"))
}

func (f *managerFlags) run(c *cobra.Command) error {
	f.tuning.Selection = f.controllers
	enabled, err := controllers.Enabled(f.controllers)
	if err != nil {
		return &usageError{fmt.Errorf("--controllers: %w", err)}
	}
	if len(enabled) == 0 {
		return &usageError{fmt.Errorf("--controllers=%s leaves no controller to run", strings.Join(f.controllers, ","))}
	}
	if err := f.validate(c.Flags()); err != nil {
		return &usageError{err}
	}
	defer f.process.startLogging(c.Flags(), c.ErrOrStderr())()
	config, err := f.restConfig()
	if err != nil {
		return &usageError{err}
	}
	o := f.options()
	f.process.configure(&o, c.Flags())
	m, err := manager.New(config, o)
	if err != nil {
		return &usageError{err} // nothing was started yet: it is about an option or the kubeconfig
	}
	if err := controllers.Add(m, f.tuning); err != nil {
		return &usageError{err}
	}
	ctx, release := manager.SetupSignals(c.Context())
	defer release()
	return m.Run(ctx)
}

// options are those of the process.
func (f *managerFlags) options() manager.Options {
	o := f.manager
	o.Metrics = metrics.New()
	o.Informers.Transform = controllers.Trim
	return o
}

// validate says which flag's value makes no sense, where nobody further down would.
func (f *managerFlags) validate(fs *pflag.FlagSet) error {
	if err := f.process.validate(); err != nil {
		return err
	}
	if f.burst < 0 || f.burst == 0 && f.qps > 0 {
		return fmt.Errorf("--kube-api-burst %d: it must be at least 1", f.burst)
	}
	if known := []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}; !slices.Contains(known, f.contentType) {
		return fmt.Errorf("--kube-api-content-type %q: it must be one of %s", f.contentType, strings.Join(known, ", "))
	}
	if n := f.tuning.EndpointSlice.MaxEndpointsPerSlice; n < 1 || n > 1000 {
		return fmt.Errorf("--max-endpoints-per-slice %d: it must be between 1 and 1000", n)
	}
	var errs []error
	fs.VisitAll(func(flag *pflag.Flag) {
		if workers, err := fs.GetInt(flag.Name); err == nil && strings.HasPrefix(flag.Name, "concurrent-") && workers < 1 {
			errs = append(errs, fmt.Errorf("--%s %d: it must be at least 1", flag.Name, workers))
		}
		if period, err := fs.GetDuration(flag.Name); err == nil && period < 0 {
			errs = append(errs, fmt.Errorf("--%s %s: it must not be negative", flag.Name, period))
		}
	})
	if len(errs) > 0 {
		return errs[0]
	}
	return nil
}

func knownNames() []string {
	var names []string
	for _, d := range controllers.Known() {
		names = append(names, d.Name)
	}
	return names
}

// restConfig reads the kubeconfig. What is wrong with it is said before anything starts.
func (f *managerFlags) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if f.kubeconfig != "" {
		if _, err := os.Stat(f.kubeconfig); err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
		rules.ExplicitPath = f.kubeconfig
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.ClusterInfo.Server = f.master
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("there is no kubeconfig: give one with --kubeconfig or $KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.QPS, config.Burst, config.ContentType = f.qps, f.burst, f.contentType
	return rest.AddUserAgent(config, "flyball-manager"), nil
}
