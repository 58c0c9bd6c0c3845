package controller

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/rbac"
	"github.com/flyball-dev/flyball/simtest"
	// flyball:api

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
	// flyball:end
	// +kubebuilder:scaffold:imports
)

var testScheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(testScheme))
	// flyball:api
	utilruntime.Must(samplev1alpha1.AddToScheme(testScheme))
	// flyball:end
	// +kubebuilder:scaffold:scheme
}

// requests records what the controllers ask the API server for in all tests of this package.
var requests = rbac.NewRecorder()

func TestMain(m *testing.M) {
	if os.Getenv("ROLE") != "" {
		klog.SetLogger(klog.Logger{}) // It discards logs: make role prints rules, and nothing between them.
	}
	code := m.Run()
	if code == 0 {
		code = checkRole()
	}
	os.Exit(code)
}

// checkRole compares what the controllers have asked for with what config/rbac/role.yaml allows.
func checkRole() (code int) {
	rules, err := allowed("../../config/rbac/role.yaml")
	if err != nil {
		fmt.Println("FAIL: the role cannot be read:", err)
		return 1
	}
	missing, unused := rbac.Compare(rules, requests.Calls())
	for _, call := range missing {
		fmt.Printf("FAIL: config/rbac/role.yaml does not allow: %s\n", call)
		fmt.Println("Add a marker +kubebuilder:rbac beside the code that asks for it, and run make manifests.")
		code = 1
	}
	if os.Getenv("ROLE") != "" {
		print("The smallest role for what the tests asked for:", requests.ClusterRole("manager-role").Rules)
		print("What config/rbac/role.yaml allows in addition:", unused)
	}
	return code
}

// allowed returns the rules of the roles in a file: markers with a namespace make a Role beside the ClusterRole.
func allowed(path string) (rules []rbacv1.PolicyRule, err error) {
	roles, err := manifest.ReadFiles([]string{path}, nil)
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

func print(title string, rules []rbacv1.PolicyRule) {
	text, err := yaml.Marshal(rules)
	if err != nil {
		text = []byte(err.Error())
	}
	fmt.Printf("%s\n\n%s\n", title, text)
}

// definitions returns the definitions of config/crd/bases.
func definitions(t *testing.T) []runtime.Object {
	t.Helper()
	read, err := manifest.ReadFiles([]string{"../../config/crd/bases"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	objects := make([]runtime.Object, len(read))
	for i := range read {
		objects[i] = read[i]
	}
	return objects
}

// underFaults returns controllers and a script for simtest, which tries every fault at every write. See docs/simtest.md
// of github.com/flyball-dev/flyball.
func underFaults(t *testing.T, setup func(*ctrl.Manager) error, script func(*simtest.User)) simtest.Scenario {
	t.Helper()
	rules, err := allowed("../../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return simtest.Scenario{
		Objects: definitions(t),
		Scheme:  testScheme,
		API:     localapi.Options{CEL: cel.New()},
		Build: func(e *simtest.Env) (simtest.Program, error) {
			mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{Scheme: testScheme})
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

// run runs controllers against an API server of this process, which knows the kinds of config/crd/bases. The time of
// the test is virtual: time.Sleep takes none, and returns when nothing else happens before.
func run(t *testing.T, setup func(mgr *ctrl.Manager) error, test func(ctx context.Context, c client.Client)) {
	t.Helper()
	objects := definitions(t)
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{Scheme: testScheme, CEL: cel.New()}, objects...)
		config := server.RESTConfig()
		config.Wrap(requests.Wrap)
		mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: testScheme})
		if err != nil {
			t.Fatal(err)
		}
		if err := setup(mgr); err != nil {
			t.Fatal(err)
		}
		c, err := client.New(server.RESTConfig(), client.Options{Scheme: testScheme})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- mgr.Start(ctx) }()
		test(ctx, c)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
