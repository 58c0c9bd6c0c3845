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
