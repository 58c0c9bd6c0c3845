// Package harness runs this operator in tests, against an API server in the same process, by the definitions, webhook
// configurations and roles of config.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/rbac"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/simtest"
	// flyball:types

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
	// flyball:end
	// flyball:conversion
	samplev1beta7 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1beta7"
	// flyball:end
	// flyball:webhook
	webhookv1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/internal/webhook/v1alpha1"
	// flyball:end
	// +kubebuilder:scaffold:imports
)

// Scheme has the kinds of this operator, and those of Kubernetes.
var Scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(Scheme))
	// flyball:types
	utilruntime.Must(samplev1alpha1.AddToScheme(Scheme))
	// flyball:end
	// flyball:conversion
	utilruntime.Must(samplev1beta7.AddToScheme(Scheme))
	// flyball:end
	// +kubebuilder:scaffold:scheme
}

// setupWebhooks adds all webhooks of this operator to a manager, as cmd/main.go does.
func setupWebhooks(mgr ctrl.Manager) error {
	// flyball:webhook
	if err := webhookv1alpha1.SetupGizmoWebhookWithManager(mgr); err != nil {
		return err
	}
	// flyball:end
	// +kubebuilder:scaffold:webhook
	return nil
}

// Run runs controllers, which setup adds to a manager. The time of the test is virtual: time.Sleep takes none, and
// returns when nothing else happens before.
func Run(t *testing.T, setup func(mgr ctrl.Manager) error, test func(t *testing.T, c client.Client)) {
	t.Helper()
	run(t, objects(t, "config/crd/bases", "config/crd/external"), setup, test)
}

// Webhooks runs all webhooks of this operator, in a manager without controllers. The API server calls them as
// config/webhook and config/crd/patches say. A path there that no webhook serves fails the test.
func Webhooks(t *testing.T, test func(t *testing.T, c client.Client)) {
	t.Helper()
	all := objects(t, "config/crd/bases", "config/crd/external", "config/crd/patches", "config/webhook/manifests.yaml")
	run(t, all, func(mgr ctrl.Manager) error {
		if err := setupWebhooks(mgr); err != nil {
			return err
		}
		return checkServed(all, mgr.GetWebhookServer().Registered())
	}, test)
}

// checkServed returns an error that names a path which the API server calls because of the objects, and which is not
// among those that are served.
func checkServed(all []runtime.Object, served []string) error {
	for _, o := range all {
		o := o.(*unstructured.Unstructured)
		hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		if conversion, found, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook"); found {
			hooks = append(hooks, conversion)
		}
		for _, hook := range hooks {
			path, _, _ := unstructured.NestedString(hook.(map[string]any), "clientConfig", "service", "path")
			if !slices.Contains(served, path) {
				return fmt.Errorf("the %s %s has the path %s, and no webhook serves it: correct the marker "+
					"+kubebuilder:webhook, or add the webhook to setupWebhooks in internal/harness/harness.go and to "+
					"cmd/main.go; served are %q", o.GetKind(), o.GetName(), path, served)
			}
		}
	}
	return nil
}

func run(t *testing.T, objects []runtime.Object, setup func(mgr ctrl.Manager) error,
	test func(t *testing.T, c client.Client),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{Scheme: Scheme, CEL: cel.New()}, objects...)
		config := server.RESTConfig()
		config.Wrap(requests.Wrap)
		options := ctrl.Options{Scheme: Scheme, Webhook: webhook.Options{Port: -1}} // called directly, by no port
		mgr, err := ctrl.NewManager(config, options)
		if err != nil {
			t.Fatal(err)
		}
		if err := setup(mgr); err != nil {
			t.Fatal(err)
		}
		server.HandleWebhook("system/webhook-service", mgr.GetWebhookServer())
		c, err := client.New(server.RESTConfig(), client.Options{Scheme: Scheme})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- mgr.Start(ctx) }()
		defer func() { // also after t.Fatal
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait() // until it has started
		test(t, c)
	})
}

// UnderFaults returns controllers and a script for simtest, which tries every fault at every write. See docs/simtest.md
// of github.com/flyball-dev/flyball.
func UnderFaults(t *testing.T, setup func(ctrl.Manager) error, script func(*simtest.User)) simtest.Scenario {
	t.Helper()
	rules, err := allowed()
	if err != nil {
		t.Fatal(err)
	}
	return simtest.Scenario{
		Objects: objects(t, "config/crd/bases", "config/crd/external"),
		Scheme:  Scheme,
		API:     localapi.Options{CEL: cel.New()},
		Build: func(e *simtest.Env) (simtest.Program, error) {
			mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{Scheme: Scheme})
			if err != nil {
				return nil, err
			}
			return mgr, setup(mgr)
		},
		Others: []func(e *simtest.Env) (simtest.Program, error){simtest.GarbageCollector},
		Script: script,
		Roles:  rules,
		Budget: 5 * time.Second, // -sim.budget=5m tries pairs of faults, too
	}
}

// objects returns what files of the project have, those that there are, and the namespace of the operator. A
// definition with the name of another one is a patch of its conversion.
func objects(t *testing.T, files ...string) []runtime.Object {
	t.Helper()
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName("sample-operator-system")
	all := []runtime.Object{namespace}
	known := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		path := filepath.Join(root(), file)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		read, err := manifest.ReadFiles([]string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range read {
			name := o.GetKind() + " " + o.GetName()
			patched, patches := known[name]
			if !patches {
				known[name], all = o.Unstructured, append(all, o.Unstructured)
				continue
			}
			conversion, _, _ := unstructured.NestedMap(o.Object, "spec", "conversion")
			if err := unstructured.SetNestedMap(patched.Object, conversion, "spec", "conversion"); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// root returns the root of the project: the nearest folder above the package of the test that has the roles.
func root() string {
	dir := "."
	for range 10 {
		if _, err := os.Stat(filepath.Join(dir, "config/rbac")); err == nil {
			break
		}
		dir = filepath.Join("..", dir)
	}
	return dir
}

// requests records what this operator asks the API server for in all tests of a package.
var requests = rbac.NewRecorder()

// Main runs the tests of a package. Then it compares what they have asked the API server for with what
// config/rbac/role.yaml allows, and fails if that is too little.
func Main(m *testing.M) (code int) {
	if code = m.Run(); code != 0 {
		return code
	}
	rules, err := allowed()
	if err != nil {
		fmt.Println("FAIL: the role cannot be read:", err)
		return 1
	}
	missing, _ := rbac.Compare(rules, requests.Calls())
	for _, call := range missing {
		fmt.Printf("FAIL: config/rbac/role.yaml does not allow: %s\n", call)
		fmt.Println("Add a marker +kubebuilder:rbac beside the code that asks for it, and run make manifests.")
		code = 1
	}
	if err := keep(os.Getenv("ROLE")); err != nil {
		fmt.Println("FAIL: make role:", err)
		return 1
	}
	return code
}

// keep adds the requests to a file, from which make role prints the smallest role.
func keep(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.Marshal(requests.Calls())
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Close())
}

// allowed returns the rules of the roles in config/rbac/role.yaml: markers with a namespace make a Role beside the
// ClusterRole.
func allowed() (rules []rbacv1.PolicyRule, err error) {
	roles, err := manifest.ReadFiles([]string{filepath.Join(root(), "config/rbac/role.yaml")}, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range roles {
		var role rbacv1.ClusterRole // a Role has no other fields for rules
		err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(r.Object, &role, true)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.From, err)
		}
		rules = append(rules, role.Rules...)
	}
	return rules, nil
}
