package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/examples/operators/items/stock"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/flags"
	"github.com/flyball-dev/flyball/manager/metrics"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its environment passed in. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "items",
		Short:         "Keep stock: a tool with controllers inside",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown command %q; the commands are listed by items --help", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w; the flags are listed by %s --help", err, c.CommandPath())}
	})
	root.AddCommand(newApply(), newCount(), newDelete(), newRun(), newList(), newTenants(), newManagerCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "items: %v\n", err)
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return 2
	}
	return 1
}

// usageError is a command line that cannot be run.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// exactly rejects any number of arguments other than that of names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return &usageError{fmt.Errorf("%s is missing; see %s --help", names[len(args)], c.CommandPath())}
		case len(args) > len(names):
			return &usageError{fmt.Errorf("unexpected argument %q; see %s --help", args[len(names)], c.CommandPath())}
		}
		return nil
	}
}

// namespace is the namespace of everything that the tool makes. Users are separated by tenants, not by namespaces.
const namespace = "default"

const (
	defaultStore = ".items"
	storeUsage   = `the directory that keeps the stock, made if there is none; one process at a time can use it; "": memory, which ends with this call`
)

// The forms of the output.
const (
	tableForm = "table"
	jsonForm  = "json"
)

// options are the flags of the commands.
type options struct {
	dir, tenant string
	output      string

	wait       bool
	timeout    time.Duration
	retries    int
	workers    int
	progress   bool
	verbose    bool
	printDelay time.Duration
}

func (o *options) addStoreFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.dir, "store", defaultStore, storeUsage)
	fs.StringVar(&o.tenant, "tenant", localapi.DefaultTenant,
		"whose stock; several tenants share a store and never see each other")
	fs.StringVarP(&o.output, "output", "o", tableForm,
		"how to print the stock: table or json; json has everything else on standard error")
}

func (o *options) addFlags(c *cobra.Command) {
	fs := c.Flags()
	o.addStoreFlags(fs)
	fs.BoolVar(&o.wait, "wait", false, "wait for what is due later, instead of listing it")
	fs.DurationVar(&o.timeout, "timeout", time.Minute,
		"how long all of it may take; then what is left is told, and the exit code is 1")
	fs.IntVar(&o.retries, "retries", 5, "how often what fails is tried again; negative: never")
	fs.IntVar(&o.workers, "workers", 4, "how many items, and how many categories, are worked on at once")
	fs.BoolVar(&o.progress, "progress", false,
		"tell how it goes on standard error; on a terminal that is always done, on one line")
	fs.BoolVar(&o.verbose, "verbose", false, "log what the controllers do, on standard error")
	fs.DurationVar(&o.printDelay, "print-delay", 0, "how long the label printer takes for a label")
}

// check rejects invalid flags before anything is started.
func (o *options) check() error {
	switch {
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: it must be more than nothing", o.timeout)
	case o.workers < 1:
		return fmt.Errorf("--workers %d: at least one is needed", o.workers)
	case o.printDelay < 0:
		return errors.New("--print-delay: it must not be negative")
	}
	return o.checkStore()
}

// checkStore is check for the flags of addStoreFlags.
func (o *options) checkStore() error {
	if !slices.Contains([]string{tableForm, jsonForm}, o.output) {
		return fmt.Errorf("--output %q: it must be table or json", o.output)
	}
	if err := storage.ValidateTenant(o.tenant); err != nil {
		return fmt.Errorf("--tenant: %w", err)
	}
	return nil
}

func newApply() *cobra.Command {
	var files []string
	o := &options{}
	c := &cobra.Command{
		Use:     "apply -f FILE|DIR|-",
		Short:   "Say what is in stock",
		Long:    "Apply files of Items and Categories (server-side), and do what follows from them.",
		Example: "  items apply -f stock.yaml\n  cat stock.yaml | items apply -f - --store ./stock --tenant north",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return &usageError{errors.New("-f is missing: it says what to apply")}
			}
			if err := o.check(); err != nil {
				return &usageError{err}
			}
			manifests, err := readManifests(files, c.InOrStdin())
			if err != nil {
				return err
			}
			return o.converge(c, func(ctx context.Context, cl client.Client) error { return apply(ctx, cl, manifests) })
		},
	}
	c.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"a file of Items and Categories in YAML or JSON, a directory of such files, or - for standard input; may be "+
			"repeated")
	o.addFlags(c)
	return c
}

func newCount() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "count NAME QUANTITY",
		Short: "Say how much is left of an item",
		Args:  exactly("NAME", "QUANTITY"),
		RunE: func(c *cobra.Command, args []string) error {
			quantity, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || quantity < 0 {
				return &usageError{fmt.Errorf("QUANTITY is %q: it must be a number, and not below 0", args[1])}
			}
			return o.converge(c, func(ctx context.Context, cl client.Client) error {
				var item api.Item
				key := client.ObjectKey{Namespace: namespace, Name: args[0]}
				if err := cl.Get(ctx, key, &item); err != nil {
					return o.missing(err, "item", args[0])
				}
				return controllerutil.RetryOnConflict(ctx, cl, &item, func() error {
					item.Spec.Quantity = quantity
					return nil
				})
			})
		},
	}
	o.addFlags(c)
	return c
}

func newDelete() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:       "delete item|category NAME",
		Short:     "Delete an item, or a category, which goes with its last item",
		ValidArgs: []string{"item", "category"},
		Args:      exactly("item|category", "NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			kinds := map[string]client.Object{"item": &api.Item{}, "category": &api.Category{}}
			obj := kinds[args[0]]
			if obj == nil {
				return &usageError{fmt.Errorf("%q can not be deleted: say item or category", args[0])}
			}
			obj.SetNamespace(namespace)
			obj.SetName(args[1])
			return o.converge(c, func(ctx context.Context, cl client.Client) error {
				return o.missing(cl.Delete(ctx, obj), args[0], args[1])
			})
		},
	}
	o.addFlags(c)
	return c
}

func newRun() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "run",
		Short: "Do what is due",
		Long:  "Go on with what an earlier call has left, and look at what has become due since.",
		Args:  exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return o.converge(c, func(context.Context, client.Client) error { return nil })
		},
	}
	o.addFlags(c)
	return c
}

func newList() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "list",
		Short: "Tell what is in stock, without doing anything",
		Args:  exactly(),
		RunE:  func(c *cobra.Command, _ []string) error { return o.list(c) },
	}
	o.addStoreFlags(c.Flags())
	return c
}

func newTenants() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "tenants",
		Short: "Tell whose stock is in the store",
		Args:  exactly(),
		RunE:  func(c *cobra.Command, _ []string) error { return o.tenants(c) },
	}
	c.Flags().StringVar(&o.dir, "store", defaultStore, storeUsage)
	return c
}

// missing returns the error for an object that does not exist. It names the object and the tenant.
func (o *options) missing(err error, kind, name string) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("tenant %s has no %s %q", o.tenant, kind, name)
	}
	return err
}

func newManagerCommand() *cobra.Command {
	f := flags.New("items-manager")
	f.LeaderElection.Namespace = "items"
	workers := 4
	c := &cobra.Command{
		Use:   "manager",
		Short: "Run the same controllers on a cluster, until a signal",
		Long: `Run the controllers of Items and Categories on the cluster that --kubeconfig, $KUBECONFIG or the service account names. The definitions of
the resources and the permissions must be there: kubectl apply -k deploy.`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			err := f.Validate()
			if workers < 1 {
				err = errors.Join(err, fmt.Errorf("--workers %d: at least one is needed", workers))
			}
			if err != nil {
				return &usageError{err}
			}
			defer f.StartLogging(c.ErrOrStderr())()
			ctx, release := manager.SetupSignals(c.Context())
			defer release()
			config, err := f.RESTConfig()
			if err != nil {
				return &usageError{err}
			}
			mgr, err := stock.NewManager(ctx, config,
				stock.Options{Manager: f.ManagerOptions(metrics.New()), Workers: workers})
			if err != nil {
				return err
			}
			return mgr.Run(ctx)
		},
	}
	f.AddFlags(c.Flags())
	c.Flags().IntVar(&workers, "workers", workers, "how many items, and how many categories, are worked on at once")
	return c
}
