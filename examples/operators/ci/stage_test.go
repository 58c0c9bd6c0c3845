package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ensure"
	"github.com/flyball-dev/flyball/examples/operators/ci/ephemeralcluster"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/examples/operators/ci/sample"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
)

// Stage is the set of clusters that a scenario runs on.
type Stage struct {
	// Hub and Build read from the servers and write to them, as users that may do everything.
	Hub, Build client.Client
	// Dir has the configuration of package sample, which SetUp writes.
	Dir string
	// Teller is told each step. It may be nil.
	*optest.Teller
	// Patience is how long a step may take. Zero means a minute.
	Patience time.Duration
}

// Args returns the command line of a process with short intervals. Without controllers it runs all of them, including
// the stand-ins.
func Args(dir string, controllers ...string) []string {
	if len(controllers) == 0 {
		controllers = []string{
			process.Promotion, process.Distributor, process.Refresher, process.Cleaner, process.Ephemeral,
			process.Minter, process.Importer, process.Runner,
		}
	}
	return append([]string{
		"--controllers=" + strings.Join(controllers, ","),
		"--dry-run=false", "--kube-api-qps=-1", "--port=0", "--leader-elect=false", "--file-poll=200ms",
		"--fake-jobs-take=1s",
		"--serviceAccountRefresherOptions.remove-old-secrets", "--ephemeralClusterProvisionerOptions.polling=200ms",
	}, sample.Args(dir)...)
}

// Options returns the options for Args.
func Options(dir string) *process.Options {
	o := process.NewOptions()
	fs := pflag.NewFlagSet("ci", pflag.PanicOnError)
	o.AddFlags(fs)
	_ = fs.Parse(Args(dir)) // it panics on an error
	return o
}

// The commits that images are built from. newCommit is the branch's commit in package sample.
const (
	oldCommit = "aaaaaaa"
	newCommit = "bbbbbbb"
)

// SetUp defines the kinds, and creates the objects that exist before the operators start.
func (s *Stage) SetUp(ctx context.Context) error {
	if err := sample.Write(s.Dir); err != nil {
		return err
	}
	for name, c := range map[string]client.Client{"hub": s.Hub, "build cluster": s.Build} {
		if err := Define(ctx, c); err != nil {
			return fmt.Errorf("define kinds on the %s: %w", name, err)
		}
		for _, namespace := range []string{"ci", ephemeralcluster.Namespace, "ocp", "team"} {
			if err := client.IgnoreAlreadyExists(
				c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}),
			); err != nil {
				return err
			}
		}
	}
	return client.IgnoreAlreadyExists(s.Build.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ensure.PullSecretNamespace, Name: ensure.PullSecretName},
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")},
		Type:       corev1.SecretTypeDockerConfigJson,
	}))
}

// OldImages creates images that are behind their branch, unless the operators, which find them missing, were faster.
// Play calls it, too.
func (s *Stage) OldImages(ctx context.Context) error {
	image := &api.Image{ObjectMeta: metav1.ObjectMeta{Name: "sha256-old"}, DockerLabels: map[string]string{
		api.CommitLabel: oldCommit, api.SourceLabel: "https://github.com/acme/widgets.git",
	}}
	stream := &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "ocp", Name: "4.21"}}
	for _, obj := range []client.Object{image, stream} {
		if err := client.IgnoreAlreadyExists(s.Hub.Create(ctx, obj)); err != nil {
			return err
		}
	}
	return controllerutil.RetryOnConflict(ctx, statusWriter{s.Hub}, stream, func() error {
		for _, tag := range []string{"server", "agent", "cli"} {
			if stream.Tag(tag) == nil {
				stream.Point(tag, api.TagEvent{Created: metav1.Now(), Image: "sha256:old"})
			}
		}
		return nil
	})
}

// statusWriter is a client whose Update writes the status.
type statusWriter struct{ client.Client }

func (w statusWriter) Update(ctx context.Context, obj client.Object, _ ...client.WriteOption) error {
	return w.Status().Update(ctx, obj)
}

// until polls until holds returns true.
func (s *Stage) until(ctx context.Context, what string, holds func() (bool, error)) error {
	var last error
	_, err := optest.Wait(ctx, what, cmp.Or(s.Patience, time.Minute), func() (ok bool, how string, err error) {
		ok, last = holds()
		return ok && last == nil, fmt.Sprint(last), nil
	})
	return err
}

// wanted returns an EphemeralCluster to request.
func wanted(name string) *api.EphemeralCluster {
	ec := &api.EphemeralCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: ephemeralcluster.Namespace, Name: name,
		Annotations: map[string]string{
			api.KonfluxClusterAnnotation: "konflux-1", api.KonfluxTenantAnnotation: "team-a",
		},
	}}
	ec.Spec.CIOperator.Releases = map[string]runtime.RawExtension{
		"latest": {Raw: []byte(`{"release":{"channel":"stable","version":"4.21"}}`)},
	}
	ec.Spec.CIOperator.Test = api.TestSpec{Workflow: "ipi-aws", ClusterProfile: "aws"}
	return ec
}
