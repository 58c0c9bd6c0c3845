package suite_test

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
	"github.com/flyball-dev/flyball/examples/operators/projects/manifests"
	"github.com/flyball-dev/flyball/examples/operators/projects/suite"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
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
				if s.Name != "rounds" { // It counts the goroutines of the process.
					t.Parallel()
				}
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
	operator := rest.CopyConfig(server.RESTConfigFor(auth.ServiceAccount("project-system", controller.Name)))
	operator.Wrap(recorder.Wrap)
	cluster := suite.Cluster{Admin: server.RESTConfig(), Operator: operator, Idle: time.Hour, Rounds: rounds(t), Soon: time.Second}
	if s.Name == "restored" { // One leads; the others have no need to renew a lease all the time.
		cluster.Base = ctrl.Options{LeaderElection: manager.LeaderElection{Enabled: true, Namespace: "project-system", Name: controller.Name}}
	}
	suite.Play(t, cluster, s)
}

// rounds is how often a Project comes and goes; FLYBALL_ROUNDS says otherwise.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("FLYBALL_ROUNDS")
	if text == "" {
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
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
