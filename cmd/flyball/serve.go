package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/cmd/flyball/live"
	"github.com/flyball-dev/flyball/cmd/flyball/serve"
	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/internal/loopback"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
)

func newServe() *cobra.Command {
	var o serve.Options
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve an embedded Kubernetes API on a loopback port, with the controllers and a fake kubelet",
		Long: `Serve an embedded Kubernetes API on a loopback port, with the controllers: a cluster in one process, for
kubectl and other clients. Pods are never run: a fake kubelet only reports that they are, or they stay Pending
(--kubelet=off).

The command writes a kubeconfig with a token. Whoever has the token may do everything; without it, nothing is allowed.

Ctrl-C ends the process, and nothing is left. With --store, the objects are kept for the next time, and for flyball
run; so are the certificate, the token and, if it is free, the port, so that clients in other terminals go on. To get
new ones, remove the kubeconfig in the directory of the store.

The exit code is 0 after Ctrl-C, 1 when something failed, 2 when the command line is wrong, ` + store.ExitCodes + `.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := localapi.CheckAddr(o.Addr); err != nil {
				return &usageError{fmt.Errorf("--addr: %w", err)}
			}
			if err := serve.CheckHosts(o.AllowedHosts); err != nil {
				return &usageError{fmt.Errorf("--allowed-hosts: %w", err)}
			}
			if err := serve.CheckWebhookServices(o.WebhookServices); err != nil {
				return &usageError{fmt.Errorf("--webhook-service: %w", err)}
			}
			if err := o.Store.Validate(); err != nil {
				return &usageError{fmt.Errorf("--tenant: %w", err)}
			}
			if len(o.Controllers) == 1 && o.Controllers[0] == "" {
				o.Controllers = nil
			}
			if _, err := controllers.Enabled(o.Controllers); err != nil && len(o.Controllers) > 0 {
				return &usageError{fmt.Errorf("--controllers: %w", err)}
			}
			if err := checkPage(o); err != nil {
				return &usageError{err}
			}
			ctx, release := manager.SetupSignals(klog.NewContext(c.Context(), klog.Background()))
			defer release()
			o.Out = c.OutOrStdout()
			err := serve.Run(ctx, o)
			if signal := (manager.SignalError{}); errors.As(context.Cause(ctx), &signal) && err != nil {
				return fmt.Errorf("serve: %v: stopped: %w", signal.Signal, err)
			}
			if err != nil {
				return fmt.Errorf("serve: %w", err)
			}
			return nil
		},
	}
	fs := c.Flags()
	fs.StringVar(&o.Addr, "addr", "127.0.0.1:0", "the loopback address to listen on; port 0 means a free port")
	fs.StringSliceVar(&o.AllowedHosts, "allowed-hosts", nil,
		"host names, besides localhost and the address, that clients may use for the API, without a port")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "",
		"where to write a kubeconfig with the token; a file that flyball did not write is never overwritten; empty "+
			"means one in the directory of the store or, without that, a temporary file, removed at the end")
	o.Store.AddFlags(fs)
	addKubeletFlag(fs, &o.Kubelet)
	fs.BoolVar(&o.Scheduler, "scheduler", true,
		"the fake kubelet places pods on its nodes; with --scheduler=false, they stay Pending until another scheduler "+
			"has placed them")
	fs.BoolVar(&o.Namespaces, "namespaces", true,
		"give new namespaces their service account and root certificate, and empty deleted ones; with "+
			"--namespaces=false, this is left to kube-controller-manager")
	fs.BoolVar(&o.RBAC, "rbac", false,
		"authorize users by the roles bound to them; the user of the kubeconfig may do everything")
	fs.StringToStringVar(&o.WebhookServices, "webhook-service", nil,
		"where to call the webhooks of a Service instead of its Pods, which are not run: NAMESPACE/NAME=HOST:PORT, "+
			"for a manager on this machine; the namespace * means every other one")
	fs.StringSliceVar(&o.Controllers, "controllers", []string{"*"},
		"the controllers to run: '*' means all that are on by default, 'foo' enables foo, '-foo' disables it; empty "+
			"means none. All controllers: "+strings.Join(controllers.Known(), ", "))
	addPageFlags(c, &o.Page, &o.Step,
		"each write and each event of a watch, of the controllers and of all clients, and each change of a cache and "+
			"each reconcile of the controllers; but nothing of kubectl, the fake kubelet and the namespace "+
			"controller, and no leases and recorded events")
	return c
}

// checkPage returns an error if the page has a wrong address, or would show nothing.
func checkPage(o serve.Options) error {
	if o.Page == "" {
		return nil
	}
	if len(o.Controllers) == 0 && !o.Step {
		return errors.New("--page: there are no controllers to show; --step shows what other clients do")
	}
	return loopback.Check("--page", o.Page)
}

// kubeletFlag is the value of --kubelet. It accepts true and false as older names for pretend and off.
type kubeletFlag struct{ on *bool }

func addKubeletFlag(fs *pflag.FlagSet, on *bool) {
	*on = true
	fs.Var(kubeletFlag{on}, "kubelet",
		"what happens to pods, which are never run: with pretend, a fake kubelet reports them as scheduled, running "+
			"and ready; with off, they stay Pending")
	fs.Lookup("kubelet").NoOptDefVal = "pretend"
}

// Set implements [pflag.Value].
func (f kubeletFlag) Set(value string) error {
	switch value {
	case "pretend", "true":
		*f.on = true
	case "off", "false":
		*f.on = false
	default:
		return errors.New("it must be pretend or off")
	}
	return nil
}

// String implements [pflag.Value].
func (f kubeletFlag) String() string {
	if f.on != nil && *f.on {
		return "pretend"
	}
	return "off"
}

// Type implements [pflag.Value].
func (f kubeletFlag) Type() string { return "string" }

// addPageFlags adds --page and --step. held is what --step holds up.
func addPageFlags(c *cobra.Command, address *string, step *bool, held string) {
	fs := c.Flags()
	fs.StringVar(address, "page", "",
		"show the controllers from inside at this loopback address until Ctrl-C; --page alone means "+
			live.DefaultAddress+". flyball trace and flyball top read it too")
	fs.Lookup("page").NoOptDefVal = live.DefaultAddress
	fs.BoolVar(step, "step", false, "hold up, until the page lets it through, "+held+". Implies --page")
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 && *address != "" {
			return &usageError{fmt.Errorf("unexpected argument %q; --page=ADDRESS needs the equals sign", args[0])}
		}
		return noArgs(c, args)
	}
	c.PreRun = func(*cobra.Command, []string) {
		if *step && *address == "" {
			*address = live.DefaultAddress
		}
	}
}
