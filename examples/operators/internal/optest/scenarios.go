package optest

import (
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/manager/rbac"
)

// Scenario is a test of an operator.
type Scenario struct {
	Name string
	// Alone means that no other scenario may run at the same time.
	Alone bool
	// Play runs the scenario.
	Play func(t *testing.T, on Cluster)
}

// Cluster is a cluster on which a scenario runs. It has the manifests.
type Cluster struct {
	// Admin may do everything, Operator only what its manifests grant.
	Admin, Operator *rest.Config
	// Real means that time passes as it does outside. Otherwise it is virtual, and an hour costs nothing.
	Real bool
}

// Operator is an operator to test.
type Operator struct {
	// Namespace and Name are those of its service account. Name is also that of its ClusterRole.
	Namespace, Name string
	// Manifests are the files, and folders with files, to apply before the operator starts.
	Manifests []string
}

// Objects returns the objects in the manifests.
func (o Operator) Objects(t *testing.T) []manifest.Object {
	t.Helper()
	objects, err := manifest.ReadFiles(o.Manifests, nil)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// Definitions returns the CustomResourceDefinitions in the manifests.
func (o Operator) Definitions(t *testing.T) (found []runtime.Object) {
	t.Helper()
	for _, obj := range o.Objects(t) {
		if obj.GetKind() == "CustomResourceDefinition" {
			found = append(found, obj.Unstructured)
		}
	}
	return found
}

// Install applies the manifests, and waits until the resources are served.
func (o Operator) Install(t *testing.T, admin *rest.Config) {
	t.Helper()
	c, err := client.New(admin, client.Options{})
	if err == nil {
		err = manifest.Install(t.Context(), c, o.Objects(t))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Play plays the scenarios, each on a server and in virtual time of its own. The operator may do only what the
// manifests grant. Together the scenarios make it send every kind of request that it ever sends, so Play also checks
// that the manifests grant nothing more. With FLYBALL_ALLOW=1 everything is allowed, so that the comparison shows all
// that the role lacks.
//
// With FLYBALL_KUBECONFIG, a kubeconfig of an administrator, the scenarios play on that cluster instead, one after the
// other.
func (o Operator) Play(t *testing.T, all []Scenario) {
	if kubeconfig := os.Getenv("FLYBALL_KUBECONFIG"); kubeconfig != "" {
		on := o.on(t, kubeconfig)
		for _, s := range all {
			t.Run(s.Name, func(t *testing.T) { s.Play(t, on) })
		}
		return
	}
	recorder, played := rbac.NewRecorder(), atomic.Int32{}
	t.Run("play", func(t *testing.T) {
		for _, s := range all {
			t.Run(s.Name, func(t *testing.T) {
				if !s.Alone {
					t.Parallel()
				}
				synctest.Test(t, func(t *testing.T) { o.play(t, s, recorder) })
				played.Add(1)
			})
		}
	})
	if int(played.Load()) == len(all) && !t.Failed() { // not if -run selects some of them
		o.CompareRoles(t, recorder)
	}
}

func (o Operator) play(t *testing.T, s Scenario, recorder *rbac.Recorder) {
	server, err := localapi.New(localapi.Options{RBAC: os.Getenv("FLYBALL_ALLOW") == "", NoKubernetesService: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	o.Install(t, server.RESTConfig())
	operator := server.RESTConfigFor(auth.ServiceAccount(o.Namespace, o.Name))
	operator.Wrap(recorder.Wrap)
	s.Play(t, Cluster{Admin: server.RESTConfig(), Operator: operator})
}

// on returns the cluster of a kubeconfig, with the manifests.
func (o Operator) on(t *testing.T, kubeconfig string) Cluster {
	t.Helper()
	admin, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	admin.QPS = -1
	o.Install(t, admin)
	return Cluster{Admin: admin, Operator: As(t, admin, o.Namespace, o.Name), Real: true}
}

// As returns the config of a service account, which must exist.
func As(t *testing.T, admin *rest.Config, namespace, name string) *rest.Config {
	t.Helper()
	c, err := client.New(admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.QPS, config.BearerToken = -1, request.Status.Token
	return config
}

// CompareRoles compares the ClusterRole, which make generate makes of the markers at the reconcilers, and the Role for
// the lease with what was recorded.
func (o Operator) CompareRoles(t *testing.T, recorder *rbac.Recorder) {
	t.Helper()
	var want rbacv1.ClusterRole
	o.find(t, "ClusterRole", o.Name, &want)
	if diff := cmp.Diff(want.Rules, recorder.ClusterRole(o.Name, "leases").Rules); diff != "" {
		t.Errorf("the ClusterRole (-) grants something else than is called (+); mend the +kubebuilder:rbac markers "+
			"and run make generate:\n%s", diff)
	}
	var lease rbacv1.Role
	o.find(t, "Role", o.Name+"-lease", &lease)
	if diff := cmp.Diff(lease.Rules, recorder.LeaseRole(lease.Name, lease.Namespace).Rules); diff != "" {
		t.Errorf("the Role of the lease (-) grants something else than is called (+):\n%s", diff)
	}
}

// find reads an object from the manifests.
func (o Operator) find(t *testing.T, kind, name string, into any) {
	t.Helper()
	others := func(obj manifest.Object) bool { return obj.GetName() != name }
	if err := manifest.Find(slices.DeleteFunc(o.Objects(t), others), kind, into); err != nil {
		t.Fatal(err)
	}
}
