package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/cmd/flyball/nodes"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/flags"
	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/manager/rbac"
)

// managerFlags holds the flags of flyball manager. A flag that kube-controller-manager also has keeps its name and
// meaning; docs/divergence.md lists the defaults that differ.
type managerFlags struct {
	process     *flags.Flags
	controllers []string
	tuning      controllers.Options
}

func newManagerFlags() *managerFlags {
	process := flags.New("flyball-manager")
	process.Inspect = inspect.New(inspect.Options{})
	return &managerFlags{process: process, controllers: []string{"*"}}
}

func newManager() *cobra.Command {
	f := newManagerFlags()
	c := &cobra.Command{
		Use:   "manager",
		Short: "Run the controllers against a cluster, beside or instead of kube-controller-manager's own",
		Long: `Run the controllers against a cluster, beside or instead of kube-controller-manager's own. Switch the same controllers
off there (--controllers=*,-deployment,-replicaset,-endpoint,-endpointslice,-endpointslicemirroring,-garbagecollector):
two controllers for one kind interfere with each other.

The first Ctrl-C or SIGTERM stops the process in order: work in flight is finished, the lease is released, and the exit
code is 0. The second ends it at once.

Garbage is collected when the heap has grown by 40 %, not by 100 % as Go does by default. This takes about a quarter
less memory for a little more processor time. The environment variable GOGC sets another percentage.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c, nil) },
	}
	f.add(c.Flags())
	return c
}

func (f *managerFlags) add(fs *pflag.FlagSet) {
	f.process.AddFlags(fs)
	fs.StringSliceVar(&f.controllers, "controllers", f.controllers,
		"the controllers to run: '*' means all that are on by default, 'foo' enables foo, '-foo' disables it; the "+
			"first match wins. All controllers: "+strings.Join(controllers.Known(), ", "))
	t := &f.tuning
	fs.IntVar(&t.Deployment.Workers, "concurrent-deployment-syncs", 5,
		"the number of Deployments that are synced at once")
	fs.IntVar(&t.ReplicaSet.Workers, "concurrent-replicaset-syncs", 5,
		"the number of ReplicaSets that are synced at once")
	fs.IntVar(&t.Endpoints.Workers, "concurrent-endpoint-syncs", 5,
		"the number of Services whose Endpoints are synced at once")
	fs.IntVar(&t.EndpointSlice.Workers, "concurrent-service-endpoint-syncs", 5,
		"the number of Services whose EndpointSlices are synced at once")
	fs.IntVar(&t.EndpointSlice.MaxEndpointsPerSlice, "max-endpoints-per-slice", 100,
		"the maximum number of endpoints in one EndpointSlice, 1 to 1000; a smaller number means more slices and less "+
			"to send for each change")
	fs.IntVar(&t.EndpointSliceMirroring.Workers, "mirroring-concurrent-service-endpoint-syncs", 5,
		"the number of Endpoints that are mirrored at once")
	fs.IntVar(&t.EndpointSliceMirroring.MaxEndpointsPerSubset, "mirroring-max-endpoints-per-subset", 1000,
		"the maximum number of addresses that are mirrored of one subset of Endpoints, 1 to 1000")
	fs.IntVar(&t.GarbageCollector.Workers, "concurrent-gc-syncs", 20,
		"the number of objects that the garbage collector processes at once")
	fs.DurationVar(&t.Endpoints.BatchPeriod, "endpoint-updates-batch-period", 0,
		"how long to batch changes of pods before writing Endpoints")
	fs.DurationVar(&t.EndpointSlice.BatchPeriod, "endpointslice-updates-batch-period", 0,
		"how long to batch changes of pods before writing EndpointSlices")
	fs.DurationVar(&t.EndpointSliceMirroring.BatchPeriod, "mirroring-endpointslice-updates-batch-period", 0,
		"how long to batch changes that others make to mirrored EndpointSlices before undoing them")
	for path, flag := range configFields {
		f.process.AddConfigField(path, flag)
	}
}

// mirroring begins the fields of the endpointslice-mirroring controller.
const mirroring = "endpointSliceMirroringController.mirroring"

// configFields are the fields of the file of --config that set the flags above.
//
// Source: k8s.io/kube-controller-manager v0.37.2 config/v1alpha1.
var configFields = map[string]string{
	"generic.controllers":                                    "controllers",
	"deploymentController.concurrentDeploymentSyncs":         "concurrent-deployment-syncs",
	"replicaSetController.concurrentRSSyncs":                 "concurrent-replicaset-syncs",
	"endpointController.concurrentEndpointSyncs":             "concurrent-endpoint-syncs",
	"endpointController.endpointUpdatesBatchPeriod":          "endpoint-updates-batch-period",
	"endpointSliceController.concurrentServiceEndpointSyncs": "concurrent-service-endpoint-syncs",
	"endpointSliceController.maxEndpointsPerSlice":           "max-endpoints-per-slice",
	"endpointSliceController.endpointUpdatesBatchPeriod":     "endpointslice-updates-batch-period",
	mirroring + "ConcurrentServiceEndpointSyncs":             "mirroring-concurrent-service-endpoint-syncs",
	mirroring + "MaxEndpointsPerSubset":                      "mirroring-max-endpoints-per-subset",
	mirroring + "EndpointUpdatesBatchPeriod":                 "mirroring-endpointslice-updates-batch-period",
	"garbageCollectorController.concurrentGCSyncs":           "concurrent-gc-syncs",
}

// run runs the manager until a signal arrives. If wrap is not nil, run calls it with the config before it creates a
// client.
func (f *managerFlags) run(c *cobra.Command, wrap func(*rest.Config)) error {
	m, err := f.build(c, wrap)
	if err != nil {
		return &usageError{err} // nothing was started yet: the cause is a flag or the kubeconfig
	}
	defer f.process.StartLogging(c.ErrOrStderr())()
	defer spareMemory()()
	ctx, release := manager.SetupSignals(c.Context())
	defer release()
	err = m.Run(ctx)
	if errors.Is(err, syscall.EADDRINUSE) {
		if f.process.InspectAddress != "" {
			return fmt.Errorf("%w; --port and --inspect-address choose other ones", err)
		}
		return fmt.Errorf("%w; --port chooses another one, 0 none", err)
	}
	return err
}

// heapGrowth is the value of GOGC: by how many percent the heap grows before it is collected. A manager's heap consists
// mostly of its caches, which stay, so with Go's default of 100 the process would take twice what they need.
// docs/performance.md has the cost.
const heapGrowth = 40

// spareMemory makes the garbage collector run earlier until restore is called, unless the environment sets GOGC.
func spareMemory() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(heapGrowth)
	return func() { debug.SetGCPercent(before) }
}

// build returns the manager with its controllers.
func (f *managerFlags) build(c *cobra.Command, wrap func(*rest.Config)) (*manager.Manager, error) {
	if err := f.validate(c.Flags()); err != nil {
		return nil, err
	}
	f.tuning.Selection = f.controllers
	enabled, err := controllers.Enabled(f.controllers)
	if err != nil {
		return nil, fmt.Errorf("--controllers: %w", err)
	}
	if len(enabled) == 0 {
		return nil, fmt.Errorf("--controllers=%s leaves no controller to run", strings.Join(f.controllers, ","))
	}
	config, err := f.process.RESTConfig()
	if err != nil {
		return nil, err
	}
	nodes.Quiet(config)
	if wrap != nil {
		wrap(config)
	}
	m, err := manager.New(config, f.options())
	if err != nil {
		return nil, err
	}
	return m, controllers.Add(m, f.tuning)
}

// options returns the manager options.
func (f *managerFlags) options() manager.Options {
	o := f.process.ManagerOptions(metrics.New())
	o.Informers.Transform = controllers.Trim
	return o
}

// validate checks the values that nothing else checks. Its error names the flag.
func (f *managerFlags) validate(fs *pflag.FlagSet) error {
	if err := f.process.Validate(); err != nil {
		return err
	}
	for _, name := range []string{"max-endpoints-per-slice", "mirroring-max-endpoints-per-subset"} {
		if n, err := fs.GetInt(name); err != nil || n < 1 || n > 1000 {
			return fmt.Errorf("--%s %d: it must be between 1 and 1000", name, n)
		}
	}
	var errs []error
	fs.VisitAll(func(flag *pflag.Flag) {
		if workers, err := fs.GetInt(flag.Name); err == nil && strings.Contains(flag.Name, "concurrent-") &&
			workers < 1 {
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

func newRBAC() *cobra.Command {
	f := newManagerFlags()
	f.process.Port = 0 // a manager may be running beside it
	var span time.Duration
	var account string
	c := &cobra.Command{
		Use:   "rbac",
		Short: "Run the manager and print the smallest roles that allow its requests to the API server",
		Long: `Run the manager as flyball manager does, with the same flags. When it ends (Ctrl-C, SIGTERM, --for), print the
permissions it needs as YAML: a ClusterRole, a Role for the lease, and their bindings to the service account. Run it with
sufficient permissions, on a cluster where the controllers have everything to do that they can do: only requests that
were made are known. Requests that were forbidden count as well. An apply counts as patch and create, because it may
create the object.`,
		Example: "  flyball rbac --kubeconfig admin.kubeconfig --controllers=deployment,replicaset --for=10m > " +
			"role.yaml",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if span < 0 {
				return &usageError{fmt.Errorf("--for %v: it must not be negative", span)}
			}
			if span > 0 {
				ctx, cancel := context.WithTimeout(c.Context(), span)
				defer cancel()
				c.SetContext(ctx)
			}
			recorder := rbac.NewRecorder()
			err := f.run(c, func(config *rest.Config) { config.Wrap(recorder.Wrap) })
			if wrong := (*usageError)(nil); errors.As(err, &wrong) {
				return err
			}
			text, failed := recorder.Manifests(f.process.Name, f.process.LeaderElection.Namespace, account)
			_, unwritten := c.OutOrStdout().Write(text)
			return errors.Join(err, failed, unwritten)
		},
	}
	f.add(c.Flags())
	c.Flags().DurationVar(&span, "for", 0, "how long to run; 0 means until Ctrl-C")
	c.Flags().StringVar(&account, "service-account", f.process.Name,
		"the service account, in the namespace of the lease, to bind the roles to")
	return c
}
