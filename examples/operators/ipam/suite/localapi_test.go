package suite_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/examples/operators/ipam/manifests"
	"github.com/flyball-dev/flyball/examples/operators/ipam/suite"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/flags"
	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/manager/rbac"
)

// TestScenarios plays them all, each on a server of its own, where the operator may do what the manifests grant it and nothing else. All
// together they make it send every kind of request that it ever sends: the manifests grant no more than that either.
// FLYBALL_UPDATE=1 writes the role.
func TestScenarios(t *testing.T) {
	recorder, played := rbac.NewRecorder(), atomic.Int32{}
	t.Run("play", func(t *testing.T) {
		for _, s := range suite.Scenarios() {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { play(t, s, recorder) })
				played.Add(1)
			})
		}
	})
	if int(played.Load()) == len(suite.Scenarios()) && !t.Failed() { // not with -run of one of them
		compareRoles(t, recorder)
	}
}

func play(t *testing.T, s suite.Scenario, recorder *rbac.Recorder) {
	server, err := localapi.New(localapi.Options{RBAC: os.Getenv("FLYBALL_UPDATE") == "", NoKubernetesService: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := suite.Prepare(t.Context(), server.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	operator := rest.CopyConfig(server.RESTConfigFor(auth.ServiceAccount("ipam-system", controller.Name)))
	operator.Wrap(recorder.Wrap)
	cluster := suite.Cluster{Admin: server.RESTConfig(), Operator: operator, Idle: 10 * time.Minute}
	if s.Name == "pool-orphans" {
		cluster.Idle = 6 * time.Hour
	}
	if s.Name == "slices-in-a-list" { // One leads; the others have no need to renew a lease all the time.
		cluster.Idle = time.Minute
		cluster.Base = ctrl.Options{LeaderElection: manager.LeaderElection{Enabled: true, Namespace: "ipam-system", Name: controller.Name}}
	}
	suite.Play(t, cluster, s)
}

func compareRoles(t *testing.T, recorder *rbac.Recorder) {
	t.Helper()
	got := recorder.ClusterRole(controller.Name, "leases")
	text, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("FLYBALL_UPDATE") != "" {
		if err := os.WriteFile("../manifests/role.yaml", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	var want rbacv1.ClusterRole
	read(t, "role.yaml", "ClusterRole", &want)
	if diff := cmp.Diff(want.Rules, got.Rules); diff != "" {
		t.Errorf("role.yaml (-) grants something else than is called (+); FLYBALL_UPDATE=1 writes it anew:\n%s", diff)
	}
	var lease rbacv1.Role
	read(t, "operator.yaml", "Role", &lease)
	if diff := cmp.Diff(lease.Rules, recorder.LeaseRole(lease.Name, lease.Namespace).Rules); diff != "" {
		t.Errorf("the Role of the lease in operator.yaml (-) grants something else than is called (+):\n%s", diff)
	}
}

// read reads the first object of a kind out of a manifest.
func read(t *testing.T, file, kind string, into any) {
	t.Helper()
	text, err := manifests.Files.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if strings.Contains("\n"+document, "\nkind: "+kind+"\n") {
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s has no %s", file, kind)
}

// TestManifestIsRestricted holds the Deployment to what a careful administrator asks for, and its command line to what the operator
// understands.
func TestManifestIsRestricted(t *testing.T) {
	var d appsv1.Deployment
	read(t, "operator.yaml", "Deployment", &d)
	pod := d.Spec.Template.Spec
	if *pod.TerminationGracePeriodSeconds < 25 || !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod: %+v", pod.SecurityContext)
	}
	c := pod.Containers[0]
	if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("container: %+v", s)
	}
	if c.Resources.Limits.Memory().IsZero() || c.LivenessProbe == nil || c.ReadinessProbe == nil {
		t.Errorf("container without limits or probes: %+v", c)
	}
	process, set := flags.New(controller.Name), pflag.NewFlagSet("ipam", pflag.ContinueOnError)
	process.AddFlags(set)
	if err := set.Parse(c.Args); err != nil {
		t.Fatal(err)
	}
	var lease rbacv1.Role
	read(t, "operator.yaml", "Role", &lease)
	o := process.ManagerOptions(metrics.New())
	if !o.LeaderElection.Enabled || o.LeaderElection.Namespace != lease.Namespace || !strings.HasSuffix(o.HealthAddr, fmt.Sprintf(":%d", c.Ports[0].ContainerPort)) {
		t.Errorf("served at %s, elected as %+v", o.HealthAddr, o.LeaderElection)
	}
}
