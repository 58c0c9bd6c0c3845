package process

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/examples/operators/ci/distributor"
	"github.com/flyball-dev/flyball/examples/operators/ci/ephemeralcluster"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/examples/operators/ci/promotion"
	"github.com/flyball-dev/flyball/examples/operators/ci/secretrefresher"
	"github.com/flyball-dev/flyball/manager/flags"
)

// The names of the controllers, as the flag spells them.
const (
	Promotion   = "promotionreconciler"
	Distributor = "test_images_distributor"
	Refresher   = "serviceaccount_secret_refresher"
	Cleaner     = "testimagestreamimportcleaner"
	Ephemeral   = "ephemeral_cluster_provisioner"
	// The following stand in for what a cluster or a CI system has otherwise.
	Minter   = "serviceaccount_secret_minter"
	Importer = "fake_importer"
	Runner   = "fake_job_runner"
)

// known are all controllers. Users may also write them without underscores: see controllerNamed.
var known = []string{Promotion, Distributor, Refresher, Cleaner, Ephemeral, Minter, Importer, Runner}

// Options are the values of the flags.
type Options struct {
	*flags.Flags

	Controllers []string
	DryRun      bool
	// HubContext is the kubeconfig's context of the main cluster.
	HubContext string
	// ConfigDir and JobsDir hold the configuration of the CI system.
	ConfigDir, JobsDir string
	// GitHubEndpoint, GitHubTokenFile and GitHubFile select where branches are looked up.
	GitHubEndpoint, GitHubTokenFile, GitHubFile string
	// ProfilesFile has the cluster profiles and their owners.
	ProfilesFile string
	// HubResync is the interval at which everything on the hub is reconciled again.
	HubResync time.Duration
	// Poll is the time between two reads of files.
	Poll time.Duration
	// JobsTake is how long a job takes with the fake runner.
	JobsTake time.Duration

	promotion   promotion.Options
	distributor distributor.Options
	refresher   secretrefresher.Options
	ephemeral   ephemeralcluster.Options

	ignoreStreams, tags, streams, namespaces, ignoreClusters []string
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	f := flags.New("ci-controllers")
	f.LeaderElection.Namespace = "ci"
	return &Options{
		Flags: f, Controllers: []string{Promotion}, DryRun: true, HubContext: "app.ci", HubResync: 24 * time.Hour,
		Poll: 5 * time.Second, JobsTake: 10 * time.Second,
	}
}

// AddFlags adds all flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.Flags.AddFlags(fs)
	o.addOwnFlags(fs)
}

// addOwnFlags adds the flags that other programs do not have.
func (o *Options) addOwnFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Controllers, "controllers", o.Controllers, "the controllers to run: some of "+
		strings.Join(known, ", "))
	fs.BoolVar(&o.DryRun, "dry-run", o.DryRun, "change nothing")
	fs.StringVar(&o.HubContext, "hub-context", o.HubContext,
		"the kubeconfig's context of the main cluster; all others are build clusters")
	fs.StringVar(&o.ConfigDir, "ci-operator-config-path", "", "the folder of ci-operator's configurations")
	fs.StringVar(&o.JobsDir, "job-config-path", "", "the folder of job configurations")
	fs.StringVar(&o.GitHubEndpoint, "github-endpoint", "https://api.github.com", "GitHub's API")
	fs.StringVar(&o.GitHubTokenFile, "github-token-path", "", "a file with a token for it")
	fs.StringVar(&o.GitHubFile, "github-refs-file", "",
		"a file that says what branches are at, to be asked instead of GitHub")
	fs.StringVar(&o.ProfilesFile, "cluster-profiles-path", "", "a file with the cluster profiles and their owners")
	fs.DurationVar(&o.HubResync, "hub-resync", o.HubResync,
		"how often everything on the main cluster is looked at again")
	fs.DurationVar(&o.Poll, "file-poll", o.Poll, "how often files are looked at")
	fs.DurationVar(&o.JobsTake, "fake-jobs-take", o.JobsTake, "how long a job takes with the fake runner")

	fs.StringSliceVar(&o.ignoreStreams, "promotionReconcilerOptions.ignore-image-stream", nil,
		"image stream tags that are not looked at: regular expressions of namespace/name:tag")
	fs.DurationVar(&o.promotion.Since, "promotionReconcilerOptions.since", 360*time.Hour,
		"the age beyond which an image is not looked at")

	fs.StringVar(&o.distributor.RegistryDomain, "testImagesDistributorOptions.registry-domain", "",
		"where the main cluster's images are pulled from")
	fs.StringSliceVar(&o.tags, "testImagesDistributorOptions.additional-image-stream-tag", nil,
		"image stream tags, namespace/name:tag, that are always distributed")
	fs.StringSliceVar(&o.streams, "testImagesDistributorOptions.additional-image-stream", nil,
		"image streams, namespace/name, that are always distributed")
	fs.StringSliceVar(&o.namespaces, "testImagesDistributorOptions.additional-image-stream-namespace", nil,
		"namespaces whose image streams are always distributed")
	fs.StringSliceVar(&o.distributor.ForbiddenRegistries, "testImagesDistributorOptions.forbidden-registry", nil,
		"registries whose images are not distributed")
	fs.StringSliceVar(&o.ignoreClusters, "testImagesDistributorOptions.ignore-cluster-name", nil,
		"build clusters that nothing is distributed to")

	fs.StringSliceVar(&o.refresher.Namespaces, "serviceAccountRefresherOptions.enabled-namespace", nil,
		"namespaces whose service accounts get new secrets")
	fs.BoolVar(&o.refresher.RemoveOld, "serviceAccountRefresherOptions.remove-old-secrets", false,
		"delete secrets that are 60 days old")
	fs.StringSliceVar(&o.refresher.IgnoreAccounts, "serviceAccountRefresherOptions.ignore-service-account", nil,
		"service accounts, namespace/name, that are left alone")

	fs.DurationVar(&o.ephemeral.TimeToLive, "ephemeralClusterProvisionerOptions.timeToLive", 0,
		"how long a cluster lives whose spec.timeToLive does not say; 0 is until it is torn down")
	fs.DurationVar(&o.ephemeral.Polling, "ephemeralClusterProvisionerOptions.polling", time.Minute,
		"how often a build cluster is looked at")
	fs.StringVar(&o.ephemeral.CLIImage, "ephemeralClusterProvisionerOptions.cliISTagRef", "ocp/4.21:cli",
		"the image stream tag of the CLI")
	fs.StringSliceVar(&o.ephemeral.PrivilegedTenants, "ephemeralClusterProvisionerOptions.privilegedTenants", nil,
		"tenants that may use every cluster profile")
	fs.DurationVar(&o.ephemeral.MetricsInterval, "ephemeralClusterProvisionerOptions.metricsInterval", time.Minute,
		"how often clusters are counted")
}

// controllerNamed returns the controller that a command line names, ignoring underscores, or "" if there is none.
func controllerNamed(text string) string {
	plain := func(s string) string { return strings.ReplaceAll(s, "_", "") }
	i := slices.IndexFunc(known, func(name string) bool { return plain(name) == plain(text) })
	if i < 0 {
		return ""
	}
	return known[i]
}

func (o *Options) runs(controllers ...string) bool {
	return slices.ContainsFunc(controllers, func(c string) bool { return slices.Contains(o.Controllers, c) })
}

// Complete reads the files that flags name.
//
// Errors: all errors, joined.
func (o *Options) Complete() error {
	wrong := []error{o.Flags.Validate()}
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	for i, text := range o.Controllers {
		name := controllerNamed(text)
		if name == "" {
			say("--controllers: there is no %q; there are %s", text, strings.Join(known, ", "))
			continue
		}
		o.Controllers[i] = name
	}
	if len(o.Controllers) == 0 {
		say("--controllers: none is asked for")
	}
	if o.ConfigDir == "" && o.runs(Promotion, Distributor) {
		say("--ci-operator-config-path is required")
	}
	if o.JobsDir == "" && o.runs(Promotion) {
		say("--job-config-path is required with %s", Promotion)
	}
	if len(o.refresher.Namespaces) == 0 && o.runs(Refresher, Minter) {
		say("--serviceAccountRefresherOptions.enabled-namespace is required with %s and %s", Refresher, Minter)
	}
	if o.ephemeral.TimeToLive < 0 {
		say("--ephemeralClusterProvisionerOptions.timeToLive %v: it must not be negative", o.ephemeral.TimeToLive)
	}
	for _, text := range o.ignoreStreams {
		expression, err := regexp.Compile(text)
		if err != nil {
			say("--promotionReconcilerOptions.ignore-image-stream: %w", err)
			continue
		}
		o.promotion.Ignore = append(o.promotion.Ignore, expression)
	}
	wrong = append(wrong, o.completeDistributor(), o.completeProfiles())
	return errors.Join(wrong...)
}

// completeDistributor reads the list of what is always distributed.
func (o *Options) completeDistributor() error {
	var wrong []error
	const prefix = "--testImagesDistributorOptions."
	o.distributor.Tags = map[imagestreamtag.Ref]bool{}
	for _, text := range o.tags {
		ref, err := imagestreamtag.Parse(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%sadditional-image-stream-tag: %w", prefix, err))
		}
		o.distributor.Tags[ref] = true
	}
	for _, text := range o.streams {
		if namespace, name, ok := strings.Cut(text, "/"); !ok || namespace == "" || name == "" ||
			strings.ContainsAny(name, "/:") {
			wrong = append(wrong,
				fmt.Errorf("%sadditional-image-stream: %q is no image stream: want namespace/name", prefix, text))
		}
	}
	o.distributor.Streams, o.distributor.Namespaces, o.distributor.IgnoreClusters = set(o.streams), set(o.namespaces),
		set(o.ignoreClusters)
	return errors.Join(wrong...)
}

func set(texts []string) map[string]bool {
	all := map[string]bool{}
	for _, text := range texts {
		all[text] = true
	}
	return all
}

// completeProfiles reads the cluster profiles.
func (o *Options) completeProfiles() error {
	if o.ProfilesFile == "" {
		return nil
	}
	text, err := os.ReadFile(o.ProfilesFile)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &o.ephemeral.Profiles)
	}
	if err != nil {
		return fmt.Errorf("--cluster-profiles-path: %w", err)
	}
	return nil
}
