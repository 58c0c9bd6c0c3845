package operators

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/examples/operators/ci/scenario"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// The CI operators, on two real control planes, with exactly what their manifests grant on each, and the stand-ins
// beside them as administrators: the scenario comes to its end, nothing is forbidden, and then nothing is written any
// more.
func TestCI(t *testing.T) {
	second, err := upstream.Start(t.Context(), upstream.Options{AuthorizationMode: "RBAC", Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	})
	there, err := clientcmd.BuildConfigFromFlags("", second.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	there.QPS = -1
	admins := map[string]*rest.Config{scenario.HubName: admin(t), scenario.BuildName: there}
	s := &scenario.Stage{
		Hub: ciClient(t, admins[scenario.HubName]), Build: ciClient(t, there), Dir: t.TempDir(),
		Patience: 3 * time.Minute, Say: t.Logf,
	}
	if err := s.SetUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	operators := map[string]*rest.Config{
		scenario.HubName:   granted(t, admins[scenario.HubName], s.Hub, "hub-role.yaml"),
		scenario.BuildName: granted(t, there, s.Build, "build/role.yaml"),
	}
	operating, standIns := scenario.Options(s.Dir), scenario.Options(s.Dir)
	operating.Controllers = []string{
		process.Promotion, process.Distributor, process.Refresher, process.Cleaner,
		process.Ephemeral,
	}
	operating.LeaderElection.Enabled = true
	// the machine may be busy
	operating.LeaderElection.LeaseDuration, operating.LeaderElection.RenewDeadline = 90*time.Second, time.Minute
	standIns.Controllers = []string{process.Minter, process.Importer, process.Runner}
	stopOperators, stopStandIns := startCI(t, operators, operating), startCI(t, admins, standIns)
	if err := s.Play(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := settled(t, s)
	if got != scenario.Ending {
		t.Errorf("the outcome is\n%s\nwant\n%s", got, scenario.Ending)
	}
	before := versions(t, s)
	time.Sleep(5 * time.Second)
	if after := versions(t, s); after != before {
		t.Errorf("something was written with nothing to do:\n%s\nbefore\n%s", after, before)
	}
	stopStandIns()
	stopOperators()
}

func ciClient(t *testing.T, config *rest.Config) *client.Cluster {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: api.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// granted applies a manifest to a cluster, and is the config of the account that it is for.
func granted(t *testing.T, admin *rest.Config, c client.Client, manifest string) *rest.Config {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "operators", "ci", "manifests", manifest))
	if err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "ci-controllers"}}
	objects := []client.Object{account}
	for document := range strings.SplitSeq(string(text), "---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, obj)
	}
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	request, err := kubernetes.NewForConfigOrDie(admin).CoreV1().ServiceAccounts("ci").CreateToken(t.Context(),
		account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.QPS, config.BearerToken = -1, request.Status.Token
	return config
}

// startCI starts a process of the operators in this one.
func startCI(t *testing.T, configs map[string]*rest.Config, o *process.Options) (stop func()) {
	t.Helper()
	for name, config := range configs {
		configs[name] = rest.CopyConfig(config)
		configs[name].UserAgent = o.Controllers[0]
	}
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	f, err := process.New(configs, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1) // what came of it
	go func() { done <- f.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// settled is the outcome when it is what it is to be, or after a while.
func settled(t *testing.T, s *scenario.Stage) (outcome string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		var err error
		if outcome, err = s.Outcome(t.Context()); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if outcome == scenario.Ending {
			break
		}
	}
	return outcome
}

// versions are those of everything that the operators write.
func versions(t *testing.T, s *scenario.Stage) string {
	t.Helper()
	var out strings.Builder
	for _, c := range []client.Client{s.Hub, s.Build} {
		for _, list := range []client.ObjectList{
			&api.ProwJobList{}, &api.EphemeralClusterList{}, &api.ImageStreamList{}, &api.ImageStreamImportList{},
			&api.TestImageStreamTagImportList{},
			&corev1.SecretList{}, &corev1.ServiceAccountList{}, &corev1.NamespaceList{},
		} {
			if err := c.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			var each []string
			err := meta.EachListItem(list, func(o runtime.Object) error {
				m := o.(client.Object)
				each = append(each, m.GetNamespace()+"/"+m.GetName()+"@"+m.GetResourceVersion())
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString(strings.Join(each, " ") + "\n")
		}
	}
	return out.String()
}
