package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager/rbac"
)

func newRBAC() *cobra.Command {
	f := newManagerFlags()
	f.process.Port = 0 // it is a tool, beside a manager perhaps
	var span time.Duration
	var account string
	c := &cobra.Command{
		Use:   "rbac",
		Short: "Run the manager and print the smallest roles that allow what it asked of the API server",
		Long: `Run the manager as flyball manager does, with its flags, and when it ends (Ctrl-C, SIGTERM, --for) print what it needs as YAML: a
ClusterRole, a Role for the one lease, and their bindings to the service account. Run it with permissions that are wide enough, on a
cluster where what the controllers do happens in the meantime: only what was asked for is known. What was refused counts as well.
An apply counts as patch and create: it may make the object.`,
		Example: "  flyball rbac --kubeconfig admin.kubeconfig --controllers=deployment,replicaset --for=10m > role.yaml",
		Args:    noArgs,
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
	c.Flags().DurationVar(&span, "for", 0, "how long to run; 0: until Ctrl-C")
	c.Flags().StringVar(&account, "service-account", f.process.Name, "the service account, in the lease's namespace, that the roles are bound to")
	return c
}
