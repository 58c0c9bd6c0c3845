package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ciconfig"
	"github.com/flyball-dev/flyball/examples/operators/ci/distributor"
	"github.com/flyball-dev/flyball/examples/operators/ci/ensure"
	"github.com/flyball-dev/flyball/examples/operators/ci/ephemeralcluster"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/examples/operators/ci/standin"
	"github.com/flyball-dev/flyball/localapi/cluster"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

// The names of the clusters.
const (
	hub   = "app.ci"
	build = "build01"
)

// clusters returns the hub and the build cluster of a simulation.
func clusters(e *simtest.Env, o manager.Options) (*fleet.Fleet, error) {
	return fleet.New(map[string]*rest.Config{hub: e.Config(), build: e.Cluster(build)},
		fleet.Options{Hub: hub, Manager: o})
}

// built returns a scenario's Build: controllers on the clusters.
func built(o manager.Options, add ...func(*fleet.Fleet) error) func(*simtest.Env) (simtest.Program, error) {
	return func(e *simtest.Env) (simtest.Program, error) {
		f, err := clusters(e, o)
		if err != nil {
			return nil, err
		}
		for _, add := range add {
			if err := add(f); err != nil {
				return nil, err
			}
		}
		return f, nil
	}
}

// namespaces builds the namespace controller of the build cluster.
func namespaces(e *simtest.Env) (simtest.Program, error) {
	return cluster.New(e.Cluster(build), cluster.Options{NoGarbageCollector: true, NoKubelet: true})
}

// ci returns a scenario on the two clusters.
func ci(t *testing.T) simtest.Scenario {
	t.Helper()
	definitions, err := manifest.ReadFiles([]string{crds}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := simtest.Scenario{
		Clusters: []string{build}, Scheme: api.NewScheme(), Budget: 2 * time.Second,
		Objects: []runtime.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ci"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ephemeralcluster.Namespace}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ocp"}},
		},
	}
	for _, d := range definitions {
		s.Objects = append(s.Objects, d.Unstructured)
	}
	return s
}

// A cluster is made and torn down on request, one is deleted when it is ready and made again, and one may not be made.
func TestSimulatedClusters(t *testing.T) {
	s := ci(t)
	s.Build = built(manager.Options{}, func(f *fleet.Fleet) error {
		return ephemeralcluster.Add(f, ephemeralcluster.Options{
			BuildCluster: build, Profiles: map[string][]ephemeralcluster.Owner{"aws": nil},
		})
	})
	s.Others = []func(*simtest.Env) (simtest.Program, error){
		built(manager.Options{}, func(f *fleet.Fleet) error {
			return standin.AddRunner(f, standin.RunnerOptions{Took: 40 * time.Second}) // It looks four times as often.
		}),
		namespaces,
		simulated.GarbageCollector(corev1.Resource("secrets"),
			api.CIGroup.WithResource("ephemeralclusters").GroupResource()),
	}
	wanted := func(name string) *api.EphemeralCluster {
		ec := &api.EphemeralCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: ephemeralcluster.Namespace, Name: name},
		}
		ec.Spec.CIOperator.Releases = map[string]runtime.RawExtension{
			"latest": {Raw: []byte(`{"release":{"channel":"stable","version":"4.21"}}`)},
		}
		ec.Spec.CIOperator.Test = api.TestSpec{Workflow: "ipi-aws", ClusterProfile: "aws"}
		return ec
	}
	reaches := func(u *simtest.User, name string, phase api.EphemeralClusterPhase) {
		u.Settle()
		u.Do(name+" is "+string(phase), func(ctx context.Context, c client.Client) error {
			ec := wanted(name)
			if err := c.Get(ctx, client.ObjectKeyFromObject(ec), ec); err != nil {
				return err
			}
			if ec.Status.Phase != phase {
				return fmt.Errorf("it is %s", ec.Status.Phase)
			}
			return nil
		})
	}
	s.Script = func(u *simtest.User) {
		u.Create(wanted("a"))
		forbidden := wanted("c")
		forbidden.Spec.CIOperator.Test.ClusterProfile = "gold"
		u.Create(forbidden)
		reaches(u, "a", api.Ready)
		reaches(u, "c", api.Failed)
		simtest.Update(u, wanted("a"), func(ec *api.EphemeralCluster) { ec.Spec.TearDownCluster = true })
		u.Delete(forbidden)
		reaches(u, "a", api.Deprovisioned)
		u.Create(wanted("b"))
		reaches(u, "b", api.Ready)
		u.Delete(wanted("b"))
		u.Settle()
		u.Create(wanted("b"))
		reaches(u, "b", api.Ready)
		// Names of jobs and of their namespaces are made of UIDs, so they cannot be compared at the end.
		u.Delete(wanted("a"))
		u.Delete(wanted("b"))
		u.Settle()
		u.Do("remove all ProwJobs", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &api.ProwJob{}, client.InNamespace(ephemeralcluster.JobNamespace))
		})
	}
	simtest.Check(t, s)
}

// Images are brought to a build cluster: a tag that is always wanted, one that somebody asks for, and both again when
// they point elsewhere. Two processes share a lease.
func TestSimulatedImages(t *testing.T) {
	s := ci(t)
	s.Build = func(e *simtest.Env) (simtest.Program, error) {
		agent, err := ciconfig.New("", "", ciconfig.Options{})
		if err != nil {
			return nil, err
		}
		elect := manager.LeaderElection{
			Enabled: true, Namespace: "ci", Name: "lease", Identity: fmt.Sprint("process-", e.Incarnation()),
		}
		return built(manager.Options{Caches: distributor.Caches(), LeaderElection: elect}, func(f *fleet.Fleet) error {
			return distributor.Add(f, agent, distributor.Options{Streams: map[string]bool{"ocp/cli": true}})
		})(e)
	}
	s.Leases = true
	s.Others = []func(*simtest.Env) (simtest.Program, error){
		built(manager.Options{}, func(f *fleet.Fleet) error {
			return standin.AddImporter(f.Builds[0], standin.ImporterOptions{})
		}),
	}
	stream := func(namespace, name string) *api.ImageStream {
		return &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	point := func(u *simtest.User, s *api.ImageStream, digest string) {
		simtest.UpdateStatus(u, s, func(s *api.ImageStream) {
			s.Point("latest", api.TagEvent{Created: metav1.Now(), Image: digest})
		})
	}
	s.Script = func(u *simtest.User) {
		u.In(build).Create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: ensure.PullSecretNamespace, Name: ensure.PullSecretName},
		})
		u.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
		u.Create(stream("ocp", "cli"))
		u.Create(stream("team", "tool"))
		point(u, stream("ocp", "cli"), "sha256:1")
		point(u, stream("team", "tool"), "sha256:2")
		u.Settle()
		u.Create(api.WithImportName(&api.TestImageStreamTagImport{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ci"},
			Spec:       api.TestImageStreamTagImportSpec{ClusterName: build, Namespace: "team", Name: "tool:latest"},
		}))
		u.Settle()
		point(u, stream("ocp", "cli"), "sha256:3")
		point(u, stream("team", "tool"), "sha256:4")
		u.Settle()
	}
	// The history of a tag has the images that were brought in time: only the last one counts.
	s.Ignore = []string{
		"imagestreams ocp/cli in build01: status.tags", "imagestreams team/tool in build01: status.tags",
	}
	s.Matches = func(s *simtest.State) error {
		for name, digest := range map[string]string{"ocp/cli": "sha256:3", "team/tool": "sha256:4"} {
			namespace, name, _ := strings.Cut(name, "/")
			brought, ok := simtest.Get[*api.ImageStream](s.In(build), namespace, name)
			if !ok || brought.Tag("latest") == nil || brought.Tag("latest").Items[0].Image != digest {
				return fmt.Errorf("%s in %s is %+v, want %s", name, build, brought, digest)
			}
		}
		return nil
	}
	simtest.Check(t, s)
}
