package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ensure"
	"github.com/flyball-dev/flyball/examples/operators/ci/ephemeralcluster"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
)

// The names of the clusters.
const (
	HubName   = "app.ci"
	BuildName = "build01"
)

// Stage is where a scenario plays.
type Stage struct {
	// Hub and Build read from the servers and write to them, as people who may do everything.
	Hub, Build client.Client
	// Dir has the configuration, which [Stage.SetUp] writes.
	Dir string
	// Say is told what happens; nil: nobody.
	Say func(format string, args ...any)
	// Patience is how long a step may take. Zero means a minute.
	Patience time.Duration
}

// Options are those of a process that plays its part: all controllers, the stand-ins among them, quick ones.
func Options(dir string) *process.Options {
	o := process.NewOptions()
	o.Controllers = []string{
		process.Promotion, process.Distributor, process.Refresher, process.Cleaner, process.Ephemeral,
		process.Minter, process.Importer, process.Runner,
	}
	o.DryRun, o.QPS, o.Port = false, -1, 0
	o.LeaderElection.Enabled = false
	o.ConfigDir, o.JobsDir = filepath.Join(dir, "config"), filepath.Join(dir, "jobs")
	o.GitHubFile, o.ProfilesFile = filepath.Join(dir, "refs.yaml"), filepath.Join(dir, "profiles.yaml")
	o.Poll, o.JobsTake = 200*time.Millisecond, time.Second
	o.SetNamespaces("team")
	o.SetPolling(200 * time.Millisecond)
	return o
}

// The commits that images are built from.
const (
	oldCommit = "aaaaaaa"
	newCommit = "bbbbbbb"
)

var files = map[string]string{
	"config/widgets.yaml": `metadata: {org: acme, repo: widgets, branch: main}
images: [{to: server}, {to: agent}, {to: cli}]
promotion: {to: [{namespace: ocp, name: "4.21"}]}
`,
	"config/tests.yaml": `metadata: {org: acme, repo: tests, branch: main}
base_images: {cli: {namespace: ocp, name: "4.21", tag: cli}}
`,
	"jobs/jobs.yaml": `postsubmits:
  acme/widgets:
  - {name: branch-ci-acme-widgets-main-images, cluster: build01, branches: ["^main$"], labels: {ci-operator.openshift.io/is-promotion: "true"}}
`,
	"refs.yaml":     "acme/widgets: {heads/main: " + newCommit + "}\nacme/tests: {heads/main: ccccccc}\n",
	"profiles.yaml": "aws: [{cluster: konflux-1, tenant: team-a}]\n",
}

// WriteFiles writes the configuration.
func (s *Stage) WriteFiles() error {
	for name, text := range files {
		path := filepath.Join(s.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// SetUp defines the kinds, and makes what is there before the operators come.
func (s *Stage) SetUp(ctx context.Context) error {
	if err := s.WriteFiles(); err != nil {
		return err
	}
	definitions, err := api.CRDs()
	if err != nil {
		return err
	}
	for name, c := range map[string]client.Client{"hub": s.Hub, "build cluster": s.Build} {
		for _, d := range definitions {
			if err := client.IgnoreAlreadyExists(c.Create(ctx, d.DeepCopy())); err != nil {
				return fmt.Errorf("define kinds on the %s: %w", name, err)
			}
		}
		for _, namespace := range []string{"ci", ephemeralcluster.Namespace, "ocp", "team"} {
			if err := client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})); err != nil {
				return err
			}
		}
		if err := s.until(ctx, "the kinds are served", func() (bool, error) {
			return c.List(ctx, &api.EphemeralClusterList{}) == nil && c.List(ctx, &api.ImageStreamList{}) == nil &&
				c.List(ctx, &api.ProwJobList{}) == nil && c.List(ctx, &api.TestImageStreamTagImportList{}) == nil &&
				c.List(ctx, &api.ImageStreamImportList{}) == nil && c.List(ctx, &api.ImageList{}) == nil, nil
		}); err != nil {
			return err
		}
	}
	return client.IgnoreAlreadyExists(s.Build.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ensure.PullSecretNamespace, Name: ensure.PullSecretName},
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")}, Type: corev1.SecretTypeDockerConfigJson,
	}))
}

// until asks until something holds.
func (s *Stage) until(ctx context.Context, what string, holds func() (bool, error)) error {
	patience := s.Patience
	if patience == 0 {
		patience = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		ok, err := holds()
		if ok && err == nil {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%w before %s", context.Cause(ctx), what), last)
		}
	}
}

func (s *Stage) say(format string, args ...any) {
	if s.Say != nil {
		s.Say(format, args...)
	}
}

// cluster is an EphemeralCluster that somebody asks for.
func cluster(name string) *api.EphemeralCluster {
	ec := &api.EphemeralCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ephemeralcluster.Namespace, Name: name, Annotations: map[string]string{
		api.KonfluxClusterAnnotation: "konflux-1", api.KonfluxTenantAnnotation: "team-a",
	}}}
	ec.Spec.CIOperator.Releases = map[string]runtime.RawExtension{"latest": {Raw: []byte(`{"release":{"channel":"stable","version":"4.21"}}`)}}
	ec.Spec.CIOperator.Test = api.TestSpec{Workflow: "ipi-aws", ClusterProfile: "aws"}
	return ec
}
