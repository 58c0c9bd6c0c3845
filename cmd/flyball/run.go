package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	files "github.com/flyball-dev/flyball"
	"github.com/flyball-dev/flyball/cmd/flyball/demo"
	oneshot "github.com/flyball-dev/flyball/cmd/flyball/run"
	"github.com/flyball-dev/flyball/cmd/flyball/serve"
	"github.com/flyball-dev/flyball/cmd/flyball/site"
	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/internal/kubeconfig"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
	"github.com/flyball-dev/flyball/manager"
)

func newRun() *cobra.Command {
	var o oneshot.Options
	var verbose bool
	c := &cobra.Command{
		Use:   "run [-f FILE|DIR|-]…",
		Short: "Apply files to an embedded API, run the controllers until there is nothing more to do, and exit",
		Long: `Apply files (server-side) to an embedded Kubernetes API, run the controllers until there is nothing more
to do, print the objects, and exit. The exit code is 0 when everything was done, 1 when something failed or the time was
over, 2 when the command line is wrong, 130 after Ctrl-C, ` + store.ExitCodes + `.

Without --store everything happens in memory. With it, the next run continues where this one stopped; a run that has
nothing to change says so. flyball serve opens the same store to kubectl.`,
		Example: `  flyball run -f deployment.yaml
  kustomize build . | flyball run -f - --store ./cluster -o yaml`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkRun(&o); err != nil {
				return &usageError{err}
			}
			var logger klog.Logger // discards everything: the summary holds what matters
			if verbose {
				logger = klog.Background()
			}
			ctx, release := manager.SetupSignals(klog.NewContext(c.Context(), logger))
			defer release()
			o.In, o.Out, o.Summary = c.InOrStdin(), c.OutOrStdout(), c.OutOrStdout()
			if o.Output != oneshot.Table {
				o.Summary = c.ErrOrStderr()
			}
			progress, clearLine := progressOn(c.ErrOrStderr())
			o.Progress = progress
			o.Out, o.Summary = &after{clearLine, o.Out}, &after{clearLine, o.Summary}
			return ended(ctx, "run", oneshot.Run(ctx, o))
		},
	}
	fs := c.Flags()
	fs.StringArrayVarP(&o.Files, "filename", "f", nil,
		"a file of objects in YAML or JSON, a directory of such files, or - for standard input; may be repeated. "+
			"Without it, the controllers run on the objects in the store")
	fs.StringVarP(&o.Namespace, "namespace", "n", "default", "the namespace of objects without one")
	fs.StringSliceVar(&o.Controllers, "controllers", []string{"*"},
		"the controllers to run: '*' means all that are on by default, 'foo' enables foo, '-foo' disables it; empty "+
			"means none. All controllers: "+strings.Join(controllers.Known(), ", "))
	addKubeletFlag(fs, &o.Kubelet)
	o.Store.AddFlags(fs)
	fs.BoolVar(&o.SkipUnknown, "skip-unknown-kinds", false,
		"skip objects of unknown kinds, and list them; without this flag they are an error, and nothing is applied")
	fs.BoolVar(&o.Wait, "wait", false,
		"wait until every object is current in the sense of kstatus: ready, and as its spec asks; if one is not "+
			"current in the end, the exit code is 1. Without this flag, keys that controllers will reconcile later "+
			"are only listed")
	fs.BoolVar(&o.AcceptUnhandled, "accept-unhandled", false,
		"with --wait: store objects of kinds that no controller handles here, and do not wait for them; without this "+
			"flag they are an error, and nothing is applied")
	fs.DurationVar(&o.Timeout, "timeout", time.Minute,
		"the maximum duration of the whole run; after that, the command prints what was done and exits with 1")
	fs.IntVar(&o.Retries, "retries", 5, "how often a failing key is retried; negative means never")
	fs.StringVarP(&o.Output, "output", "o", oneshot.Table,
		"how to print the objects: table, json or yaml; with json and yaml, the summary goes to standard error")
	fs.BoolVar(&verbose, "verbose", false, "log to standard error")
	return c
}

func checkRun(o *oneshot.Options) error {
	if len(o.Controllers) == 1 && o.Controllers[0] == "" {
		o.Controllers = nil
	}
	if _, err := controllers.Enabled(o.Controllers); err != nil && len(o.Controllers) > 0 {
		return fmt.Errorf("--controllers: %w", err)
	}
	if err := o.Store.Validate(); err != nil {
		return fmt.Errorf("--tenant: %w", err)
	}
	if !slices.Contains([]string{oneshot.Table, oneshot.JSON, oneshot.YAML}, o.Output) {
		return fmt.Errorf("--output %q: it must be table, json or yaml", o.Output)
	}
	if wrong := validation.ValidateNamespaceName(o.Namespace, false); len(wrong) > 0 {
		return fmt.Errorf("--namespace %q: %s", o.Namespace, wrong[0])
	}
	if o.Timeout <= 0 {
		return fmt.Errorf("--timeout %v: it must be positive", o.Timeout)
	}
	if len(o.Files) == 0 && o.Store.Dir == "" {
		return errors.New("nothing to do: pass -f with files to apply, or --store with a store to continue from")
	}
	return nil
}

// progressOn returns a function that shows the progress on one line of a terminal, and one that clears that line. If
// out is not a terminal, they show nothing.
func progressOn(out io.Writer) (show func(manager.Progress), wipe func()) {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, func() {}
	}
	shown := false
	show = func(p manager.Progress) {
		shown = true
		fmt.Fprintf(f, "\r\x1b[K%d reconciles, %d queued, %d in flight, %d errors, %.1fs", p.Processed, p.Queued,
			p.InFlight, p.Errors, p.Elapsed.Seconds())
	}
	wipe = func() {
		if shown {
			fmt.Fprint(f, "\r\x1b[K")
			shown = false
		}
	}
	return show, wipe
}

// after is a writer that calls first before each write.
type after struct {
	first func()
	out   io.Writer
}

// Write implements io.Writer.
func (a *after) Write(p []byte) (int, error) {
	a.first()
	return a.out.Write(p)
}

func newDemo() *cobra.Command {
	o := demo.Options{}
	var config string
	var keep bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Play the life of a Deployment on an embedded API, in this process",
		Long: `Play the life of a Deployment on Flyball's own pipeline, in one process: an embedded Kubernetes API, a
fake kubelet and the real controllers. The demo needs nothing and leaves nothing behind.

With --scenario lease, another story is played: two processes compete for a lease, and the leader is cut off from it.
With --scenario lost, it is one of troubles: a lost answer, an API that is away, and one that has forgotten its history.

With --kubeconfig, the same story is played on a cluster, in a new namespace that is deleted at the end. The controllers
and kubelets of that cluster do the work; the demo only watches.

If all goes well, the last line begins with "demo: ok" and the exit code is 0. If a step does not reach its expected
outcome, the exit code is 1 and the last line says what was expected and what was found. Ctrl-C stops the demo; the exit
code is then 130.`,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, flag := range []string{"speed", "keep", "page", "step", "scenario"} {
				if config != "" && c.Flags().Changed(flag) {
					return &usageError{fmt.Errorf("--%s has no meaning with --kubeconfig", flag)}
				}
			}
			if err := o.Validate(); err != nil {
				return &usageError{err}
			}
			if config != "" {
				var err error
				rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: config}
				if o.Cluster, err = kubeconfig.Load(rules, nil, "--kubeconfig"); err != nil {
					return &usageError{err}
				}
			}
			ctx, release := quietly(c.Context())
			defer release()
			o.Out, o.Book, o.API.CEL = c.OutOrStdout(), site.Handler(files.Docs), cel.New()
			if keep {
				known, err := serve.NewCredentials()
				if err != nil {
					return err
				}
				o.API.Tokens = serve.Tokens(known.Token)
				o.Keep = func(ctx context.Context, server *localapi.Server) error {
					return known.Keep(ctx, server, o.Out)
				}
			}
			return ended(ctx, "demo", demo.Run(ctx, o))
		},
	}
	c.Flags().StringVar(&config, "kubeconfig", "",
		"play the story on the cluster of this kubeconfig, with its controllers and its kubelets")
	c.Flags().StringSliceVar(&o.Images, "images", nil,
		"the two images of the story, for a cluster that cannot pull nginx:1.28,nginx:1.29")
	c.Flags().Float64Var(&o.Speed, "speed", 1,
		"the speed of the fake kubelet: at 1 it starts or stops a pod in about half a second, at 2 in a quarter of a "+
			"second")
	c.Flags().DurationVar(&o.Timeout, "timeout", time.Minute, "the maximum duration of one step")
	c.Flags().BoolVar(&keep, "keep", false, "after the story, serve the API on a loopback port until Ctrl-C")
	addPageFlags(c, &o.Page, &o.Step, "each event, change, reconcile and write of the controllers")
	c.Flags().StringVar(&o.Scenario, "scenario", "",
		"a step, which chooses the story. With --step, the controllers are held up from this step on. The steps: "+
			strings.Join(demo.Scenarios(), ", "))
	return c
}
