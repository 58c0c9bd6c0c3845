package envtest_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/envtest"
)

// TestEnvironment starts and stops one twice, and comes in by its config and its kubeconfig.
func TestEnvironment(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	e := &envtest.Environment{CRDDirectoryPaths: []string{"testdata/crds"}}
	for range 2 {
		e.KubeConfig = nil
		config, err := e.Start()
		if err != nil {
			t.Fatal(err)
		}
		if config != e.Config || e.Scheme == nil || len(e.CRDs) != 1 || e.CRDs[0].UID == "" {
			t.Errorf("after the start: config %v, scheme %v, definitions %v", e.Config, e.Scheme, e.CRDs)
		}
		if _, err := e.Start(); err == nil || !strings.Contains(err.Error(), "already started") {
			t.Errorf("a second start: %v", err)
		}
		fromFile, err := clientcmd.RESTConfigFromKubeConfig(e.KubeConfig)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*rest.Config{config, fromFile} {
			client := clientFor(t, c)
			if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
			if r, err := client.Discovery().ServerResourcesForGroupVersion("example.com/v1"); err != nil ||
				r.APIResources[0].Name != "backups" {
				t.Errorf("the definition is not in effect: %v, %v", r, err)
			}
		}
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
		_, err = clientFor(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after the stop: %v", err)
		}
	}
	if err := e.Stop(); err != nil {
		t.Errorf("nothing runs: %v", err)
	}
}

// start starts an environment that ends with the test.
func start(t *testing.T, e *envtest.Environment) {
	t.Helper()
	if _, err := e.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// clientFor returns a client that keeps no connection.
func clientFor(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	c = rest.CopyConfig(c)
	// A transport of its own, not the one that client-go keeps for equal configurations.
	c.Dial = (&net.Dialer{}).DialContext
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestUsers: what a user may do is what roles allow, and who has no certificate may do nothing.
func TestUsers(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	e := &envtest.Environment{}
	if _, err := e.AddUser(envtest.User{Name: "joe"}, nil); err == nil {
		t.Error("a user of an environment that does not run")
	}
	start(t, e)
	if _, err := e.AddUser(envtest.User{}, nil); err == nil {
		t.Error("a user without a name")
	}
	joe, err := e.AddUser(envtest.User{Name: "joe", Groups: []string{"readers"}}, &rest.Config{UserAgent: "suite"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := joe.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	fromFile, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	if joe.Config().UserAgent != "suite" {
		t.Errorf("the settings of the base are lost: %v", joe.Config())
	}
	list := func(c *rest.Config) error {
		_, err := clientFor(t, c).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		return err
	}
	for _, c := range []*rest.Config{joe.Config(), fromFile} {
		if err := list(c); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "joe"`) {
			t.Errorf("without a role: %v", err)
		}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
	}
	if _, err := clientFor(t, e.Config).RbacV1().ClusterRoleBindings().Create(t.Context(), binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*rest.Config{joe.Config(), fromFile} {
		if err := list(c); err != nil {
			t.Errorf("with a role for the group: %v", err)
		}
	}
	nobody := rest.AnonymousClientConfig(e.Config)
	if err := list(nobody); !apierrors.IsForbidden(err) {
		t.Errorf("without a certificate: %v", err)
	}
}

// TestInstallCRDs: of definitions with one name the last counts, one that is there is updated, paths may be missing
// unless they must not.
func TestInstallCRDs(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	e := &envtest.Environment{CRDDirectoryPaths: []string{"testdata/crds", "testdata/nowhere"}}
	start(t, e)
	first := e.CRDs[0].DeepCopy()
	changed := first.DeepCopy()
	changed.ResourceVersion = ""
	spec := changed.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	spec.Properties["keep"] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
	o := envtest.CRDInstallOptions{
		Paths: []string{"testdata/crds/backups.yaml"},
		CRDs:  []*apiextensionsv1.CustomResourceDefinition{changed},
	}
	if err := envtest.ReadCRDFiles(&o); err != nil || len(o.CRDs) != 1 || o.CRDs[0] == changed {
		t.Errorf("two of one name: %v, %v", o.CRDs, err)
	}
	all, err := envtest.InstallCRDs(e.Config,
		envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{changed}})
	if err != nil || len(all) != 1 || all[0].UID != first.UID || all[0].Generation != first.Generation+1 {
		t.Errorf("the update: %v, %v", all, err)
	}
	for range 2 {
		if err := envtest.UninstallCRDs(e.Config, envtest.CRDInstallOptions{CRDs: all}); err != nil {
			t.Error(err)
		}
	}
	client := discovery.NewDiscoveryClientForConfigOrDie(e.Config)
	if _, err := client.ServerResourcesForGroupVersion("example.com/v1"); !apierrors.IsNotFound(err) {
		t.Errorf("after the removal: %v", err)
	}
	err = envtest.WaitForCRDs(e.Config, all,
		envtest.CRDInstallOptions{PollInterval: time.Millisecond, MaxTime: 5 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "backups in example.com/v1 is not served") {
		t.Errorf("waiting for what is gone: %v", err)
	}
}

// TestStartFails: nothing is left of a start that fails, and the error says why.
func TestStartFails(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("kind: CustomResourceDefinition\nspec: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	invalid := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "nonsense"}}
	hook := []*admissionv1.ValidatingWebhookConfiguration{{
		ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Webhooks: []admissionv1.ValidatingWebhook{{Name: "short"}},
	}}
	for want, e := range map[string]*envtest.Environment{
		"nowhere: no such file":       {CRDDirectoryPaths: []string{"nowhere"}, ErrorIfCRDPathMissing: true},
		broken + ": document 1":       {CRDInstallOptions: envtest.CRDInstallOptions{Paths: []string{broken}}},
		"install definition nonsense": {CRDs: []*apiextensionsv1.CustomResourceDefinition{invalid}},
		"install validating webhooks bad": {
			WebhookInstallOptions: envtest.WebhookInstallOptions{ValidatingWebhooks: hook},
		},
		"read webhook configurations: stat no/such": {
			WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"no/such"}},
		},
	} {
		if config, err := e.Start(); config != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v, %v", want, config, err)
		}
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestExistingCluster installs definitions into a cluster that is there, and removes them at the end.
func TestExistingCluster(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	cluster := &envtest.Environment{}
	start(t, cluster)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, cluster.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	use := func(e *envtest.Environment) {
		t.Helper()
		e.CRDDirectoryPaths, e.CRDInstallOptions.CleanUpAfterUse = []string{"testdata/crds"}, true
		config, err := e.Start()
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != cluster.Config.Host {
			t.Errorf("another cluster: %s", config.Host)
		}
		if _, err := e.AddUser(envtest.User{Name: "joe"}, nil); err == nil {
			t.Error("a user of a cluster that is not ours")
		}
		here := discovery.NewDiscoveryClientForConfigOrDie(cluster.Config)
		if _, err := here.ServerResourcesForGroupVersion("example.com/v1"); err != nil {
			t.Error(err)
		}
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := here.ServerResourcesForGroupVersion("example.com/v1"); !apierrors.IsNotFound(err) {
			t.Errorf("the definition was not removed: %v", err)
		}
	}
	use(&envtest.Environment{UseExistingCluster: ptr.To(true), Config: cluster.Config})
	t.Setenv("USE_EXISTING_CLUSTER", "true")
	t.Setenv("KUBECONFIG", path)
	use(&envtest.Environment{})
	other := &envtest.Environment{UseExistingCluster: ptr.To(false)}
	start(t, other)
	if other.Config.Host == cluster.Config.Host {
		t.Error("the field does not count before the environment variable")
	}
}

// TestIgnored: the log names what means nothing here.
func TestIgnored(t *testing.T) {
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	klog.SetLogger(logger)
	start(t, &envtest.Environment{BinaryAssetsDirectory: "bin/k8s", ControlPlaneStopTimeout: time.Minute})
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if !strings.Contains(log, "BinaryAssetsDirectory") || !strings.Contains(log, "ControlPlaneStopTimeout") ||
		strings.Contains(log, "StartTimeout") {
		t.Errorf("the log: %s", log)
	}
}

// TestKubeConfigOfATransport: a configuration that no file can hold is an error.
func TestKubeConfigOfATransport(t *testing.T) {
	inMemory := &rest.Config{Host: "http://localapi", Transport: http.DefaultTransport}
	e := &envtest.Environment{UseExistingCluster: ptr.To(true), Config: inMemory}
	if _, err := e.Start(); err == nil || !strings.Contains(err.Error(), "no file can hold") {
		t.Error(err)
	}
}
