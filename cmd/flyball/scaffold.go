package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/cmd/flyball/scaffold"
	"github.com/flyball-dev/flyball/manager"
)

func newInit() *cobra.Command {
	o := scaffold.InitOptions{Dir: ".", FetchDeps: true}
	c := &cobra.Command{
		Use:   "init",
		Short: "Begin the project of an operator in an empty folder",
		Long: `Begin the project of an operator in an empty folder: a Go module with a manager, manifests, a Makefile
and an image. flyball create api adds kinds to it. The layout is kubebuilder's, and so are the names of the flags.`,
		Example: "  mkdir guestbook && cd guestbook && flyball init --module example.com/guestbook",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Flyball, o.Out = ownVersion(), c.OutOrStdout()
			if err := o.Validate(); err != nil {
				return &usageError{fmt.Errorf("init: %w", err)}
			}
			ctx, release := manager.SetupSignals(klog.NewContext(c.Context(), klog.Logger{}))
			defer release()
			return ended(ctx, "init", scaffold.Init(ctx, o))
		},
	}
	fs := c.Flags()
	fs.StringVar(&o.Module, "module", "", "the path of the Go module, such as example.com/guestbook")
	fs.StringVar(&o.Module, "repo", "", "kubebuilder's name for --module")
	fs.StringVar(&o.Domain, "domain", "",
		"what the API groups end in; empty means the first element of the module, such as example.com")
	fs.StringVar(&o.ProjectName, "project-name", "",
		"what the names of the objects in the cluster begin with; empty means the last element of the module")
	fs.StringVar(&o.Source, "flyball-source", "",
		"a folder with the source of flyball, which the project uses by a replace line instead of a release")
	fs.BoolVar(&o.Multigroup, "multigroup", false, "name the folders of all groups after them, also those of the first")
	fs.BoolVar(&o.FetchDeps, "fetch-deps", true, "run go mod tidy at the end")
	return c
}

func newCreate() *cobra.Command {
	c := &cobra.Command{
		Use:   "create",
		Short: "Add a kind or a webhook to the project of an operator",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown command create %q: create api or create webhook", args[0])}
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return &usageError{errors.New("create what: api or webhook?")} },
	}
	c.AddCommand(newCreateAPI(), newCreateWebhook())
	return c
}

func newCreateAPI() *cobra.Command {
	o := scaffold.APIOptions{Dir: ".", FetchDeps: true}
	resource, controller, namespaced := true, true, true
	c := &cobra.Command{
		Use:   "api",
		Short: "Add a kind to the project: type, definition, controller, tests, roles, sample",
		Long: `Add a kind to the project in this folder: its Go type, its definition, a controller with a finalizer,
conditions and events, tests, roles and a sample. Run it in the root of the project.

For a further version of a kind, its type and its definition begin as copies of those of the first version, which stays
the one that is stored unless you say --storage; flyball create webhook --conversion creates the conversion. The folders
of the first group have no name of a group, those of further groups do.

Files that exist are kept as they are, and what is missing is added to cmd/main.go and others, also after your changes.
What cannot be added is printed.`,
		Example: `  flyball create api --group webapp --version v1 --kind Guestbook
  flyball create api --resource=false --group apps --version v1 --kind Deployment`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Out, o.NoResource, o.NoController, o.ClusterScoped = c.OutOrStdout(), !resource, !controller, !namespaced
			if err := o.Validate(); err != nil {
				return &usageError{fmt.Errorf("create api: %w", err)}
			}
			ctx, release := manager.SetupSignals(klog.NewContext(c.Context(), klog.Logger{}))
			defer release()
			return ended(ctx, "create api", scaffold.CreateAPI(ctx, o))
		},
	}
	fs := c.Flags()
	fs.StringVar(&o.Group, "group", "", "the API group, without the domain of the project")
	fs.StringVar(&o.Version, "version", "", "the version, such as v1 or v1alpha1")
	fs.StringVar(&o.Kind, "kind", "", "the kind, such as Guestbook")
	fs.StringVar(&o.Plural, "plural", "",
		"the name of the resource; empty means that of the kind's first version, or the English plural of the kind")
	fs.BoolVar(&resource, "resource", true,
		"create the type; false means only the controller, of a kind that the project or Kubernetes has, or one of "+
			"--external-api-path")
	fs.BoolVar(&controller, "controller", true, "create the controller")
	fs.BoolVar(&namespaced, "namespaced", true,
		"false means a kind whose objects are in no namespace; what its controller writes is in that of the manager")
	fs.BoolVar(&o.Storage, "storage", false, "store the kind in this version, which may exist already")
	addExternalFlags(fs, &o.ExternalPath, &o.ExternalDomain)
	fs.BoolVar(&o.Force, "force", false, "replace files that exist")
	fs.BoolVar(&o.FetchDeps, "fetch-deps", true, "run go mod tidy at the end")
	return c
}

// addExternalFlags adds the flags that name a kind of another project, as kubebuilder calls them.
func addExternalFlags(fs *pflag.FlagSet, path, domain *string) {
	fs.StringVar(path, "external-api-path", "",
		"the package of the types, of a kind of another project, such as "+
			"github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1")
	fs.StringVar(domain, "external-api-domain", "", "what the group of that kind ends in, such as io")
}

func newCreateWebhook() *cobra.Command {
	o := scaffold.WebhookOptions{Dir: ".", FetchDeps: true}
	c := &cobra.Command{
		Use:   "webhook",
		Short: "Add webhooks to a kind of the project or of Kubernetes: defaulting, validation, conversion",
		Long: `Add webhooks to a kind of the project in this folder, of Kubernetes, or of another project, with tests
and manifests. Run it in the root of the project.

The manager keeps the certificate of its webhooks itself, unless it gets one by --webhook-cert-path. Files that exist
are extended, also after your changes.`,
		Example: `  flyball create webhook --group webapp --version v1 --kind Guestbook --programmatic-validation
  flyball create webhook --group core --version v1 --kind Pod --defaulting`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Out = c.OutOrStdout()
			if err := o.Validate(); err != nil {
				return &usageError{fmt.Errorf("create webhook: %w", err)}
			}
			ctx, release := manager.SetupSignals(klog.NewContext(c.Context(), klog.Logger{}))
			defer release()
			return ended(ctx, "create webhook", scaffold.CreateWebhook(ctx, o))
		},
	}
	fs := c.Flags()
	fs.StringVar(&o.Group, "group", "", "the API group, without the domain of the project")
	fs.StringVar(&o.Version, "version", "", "the version")
	fs.StringVar(&o.Kind, "kind", "", "the kind")
	fs.BoolVar(&o.Defaulting, "defaulting", false, "create a mutating webhook, which sets defaults")
	fs.BoolVar(&o.Validation, "programmatic-validation", false, "create a validating webhook")
	fs.BoolVar(&o.Conversion, "conversion", false,
		"create the webhook that converts between versions: --version is the hub, the others are named by --spoke")
	fs.StringVar(&o.Plural, "plural", "",
		"the name of the resource, of a kind that is not the project's own; empty means the English plural of the kind")
	addExternalFlags(fs, &o.ExternalPath, &o.ExternalDomain)
	fs.StringSliceVar(&o.Spokes, "spoke", nil, "versions of the kind that are converted to the hub and from it")
	fs.BoolVar(&o.Force, "force", false, "replace files that exist")
	fs.BoolVar(&o.FetchDeps, "fetch-deps", true, "run go mod tidy at the end")
	return c
}

func newMigrate() *cobra.Command {
	o := scaffold.MigrateOptions{Dir: ".", FetchDeps: true}
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Move a project of kubebuilder to Flyball",
		Long: `Move the project of kubebuilder in this folder to Flyball: imports, the manager of cmd/main.go, suites of
envtest, Makefile and manifests. The command rewrites what kubebuilder has written and what has other names here. It
lists the lines that it leaves to you. It refuses a folder with work that is not committed to git, unless you say
--force.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Flyball, o.Out = ownVersion(), c.OutOrStdout()
			ctx, release := manager.SetupSignals(klog.NewContext(c.Context(), klog.Logger{}))
			defer release()
			return ended(ctx, "migrate", scaffold.Migrate(ctx, o))
		},
	}
	fs := c.Flags()
	fs.StringVar(&o.Source, "flyball-source", "",
		"a folder with the source of flyball, which the project uses by a replace line instead of a release")
	fs.BoolVar(&o.Force, "force", false, "move a project whose work is not committed")
	fs.BoolVar(&o.FetchDeps, "fetch-deps", true, "run go mod tidy at the end")
	return c
}
