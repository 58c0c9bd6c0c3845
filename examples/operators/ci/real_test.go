package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
)

// TestScenario plays the scenario on the clusters of FLYBALL_KUBECONFIG, the hub, and FLYBALL_BUILD_KUBECONFIG. The
// operators have exactly what their manifests grant on each, and the stand-ins beside them are administrators. The
// scenario comes to its end, nothing is forbidden, and then nothing is written any more.
func TestScenario(t *testing.T) {
	w, s := optest.NewWorld(t, nil), &Stage{Dir: t.TempDir(), Patience: 3 * time.Minute}
	admins := map[string]*rest.Config{}
	for variable, name := range map[string]string{"FLYBALL_KUBECONFIG": Hub, "FLYBALL_BUILD_KUBECONFIG": Build01} {
		kubeconfig := os.Getenv(variable)
		if kubeconfig == "" {
			t.Skip("needs two clusters: " + variable + " is not set")
		}
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		w.Must(err)
		config.QPS, admins[name] = -1, config
	}
	s.Hub, s.Build = newClient(t, admins[Hub]), newClient(t, admins[Build01])
	w.Must(s.SetUp(w.Ctx))
	operators := map[string]*rest.Config{
		Hub:     granted(w, admins[Hub], "hub-role.yaml"),
		Build01: granted(w, admins[Build01], "build/role.yaml"),
	}
	operating, standIns := Options(s.Dir), Options(s.Dir)
	operating.Controllers = []string{
		process.Promotion, process.Distributor, process.Refresher, process.Cleaner,
		process.Ephemeral,
	}
	operating.LeaderElection.Enabled = true
	// The machine may be busy.
	operating.LeaderElection.LeaseDuration, operating.LeaderElection.RenewDeadline = 90*time.Second, time.Minute
	standIns.Controllers = []string{process.Minter, process.Importer, process.Runner}
	stopOperators, stopStandIns := startOn(w, operators, operating), startOn(w, admins, standIns)
	w.Must(s.Play(w.Ctx))
	w.Within(time.Minute, func() string {
		if outcome, err := s.Outcome(w.Ctx); client.IgnoreNotFound(err) != nil || outcome != Ending {
			return "the outcome is\n" + outcome + "\nwant\n" + Ending
		}
		return ""
	})
	before := versions(w, s)
	time.Sleep(5 * time.Second)
	if after := versions(w, s); after != before {
		t.Errorf("something was written with nothing to do:\n%s\nbefore\n%s", after, before)
	}
	stopStandIns()
	stopOperators()
}

// granted applies a manifest to a cluster, and returns the config of the account that it is for.
func granted(w *optest.World, admin *rest.Config, file string) *rest.Config {
	w.Helper()
	c := newClient(w.T, admin)
	w.Must(c.Create(w.Ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: account}}))
	objects, err := manifest.ReadFiles([]string{filepath.Join("manifests", file)}, nil)
	w.Must(err)
	w.Must(manifest.Install(w.Ctx, c, objects))
	return optest.As(w.T, admin, "ci", account)
}

// versions returns those of everything that the operators write.
func versions(w *optest.World, s *Stage) string {
	w.Helper()
	var out strings.Builder
	for _, c := range []client.Client{s.Hub, s.Build} {
		for _, list := range []client.ObjectList{
			&api.ProwJobList{}, &api.EphemeralClusterList{}, &api.ImageStreamList{}, &api.ImageStreamImportList{},
			&api.TestImageStreamTagImportList{},
			&corev1.SecretList{}, &corev1.ServiceAccountList{}, &corev1.NamespaceList{},
		} {
			w.Must(c.List(w.Ctx, list))
			w.Must(meta.EachListItem(list, func(o runtime.Object) error {
				m := o.(client.Object)
				out.WriteString(m.GetNamespace() + "/" + m.GetName() + "@" + m.GetResourceVersion() + " ")
				return nil
			}))
			out.WriteString("\n")
		}
	}
	return out.String()
}
