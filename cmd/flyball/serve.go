package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/cmd/flyball/serve"
	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
)

func newServe() *cobra.Command {
	var o serve.Options
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve an embedded Kubernetes API on a loopback port, with the controllers and pretended pods",
		Long: `Serve an embedded Kubernetes API on a loopback port, with the controllers: a cluster in one process, for kubectl and other
clients. No pod is run: a fake kubelet only reports that they run, or nobody does (--kubelet=off). Whoever has the token in the kubeconfig that is written may do everything, and nobody else anything.
Ctrl-C ends it, and nothing is left; with --store everything is there the next time, for flyball run, too. The exit code is 0 after
Ctrl-C, 1 when something failed, 2 when the command line is wrong, ` + store.ExitCodes + `.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := localapi.CheckAddr(o.Addr); err != nil {
				return &usageError{fmt.Errorf("--addr: %w", err)}
			}
			if err := serve.CheckHosts(o.AllowedHosts); err != nil {
				return &usageError{fmt.Errorf("--allowed-hosts: %w", err)}
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
	fs.StringVar(&o.Addr, "addr", "127.0.0.1:0", "the loopback address to listen at; port 0 is a free one")
	fs.StringSliceVar(&o.AllowedHosts, "allowed-hosts", nil, "names, beside localhost and the address, under which clients may ask for the API, without a port")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "where to write a kubeconfig with a new token, never over somebody else's; empty: a temporary file, removed at the end")
	o.Store.AddFlags(fs)
	addKubeletFlag(fs, &o.Kubelet)
	fs.BoolVar(&o.RBAC, "rbac", false, "let users do what roles bound to them allow, and nothing else; the kubeconfig's user may do everything")
	fs.StringSliceVar(&o.Controllers, "controllers", []string{"*"}, "the controllers to run: '*' is all that are on by default, 'foo' is foo, '-foo' is not foo; empty: none. All: "+strings.Join(knownNames(), ", "))
	return c
}
