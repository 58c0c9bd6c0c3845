package optest

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

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
	// Play runs the scenario on a server that has the manifests. admin may do everything; operator has the operator's
	// permissions.
	Play func(t *testing.T, admin, operator *rest.Config)
}

// Operator is an operator to test.
type Operator struct {
	// Namespace and Name are those of its service account. Name is also that of its ClusterRole.
	Namespace, Name string
	// Prepare applies the manifests. Only Play needs it.
	Prepare func(ctx context.Context, admin *rest.Config) error
	// Objects returns the manifests.
	Objects func() ([]manifest.Object, error)
}

// Play plays the scenarios, each on a server and in virtual time of its own. The operator may do only what the
// manifests grant. Together the scenarios make it send every kind of request that it ever sends, so Play also checks
// that the manifests grant nothing more. With FLYBALL_ALLOW=1 everything is allowed, so that the comparison shows all
// that the role lacks.
func (o Operator) Play(t *testing.T, all []Scenario) {
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
	if err := o.Prepare(t.Context(), server.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	operator := server.RESTConfigFor(auth.ServiceAccount(o.Namespace, o.Name))
	operator.Wrap(recorder.Wrap)
	s.Play(t, server.RESTConfig(), operator)
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
	objects, err := o.Objects()
	if err == nil {
		others := func(obj manifest.Object) bool { return obj.GetName() != name }
		err = manifest.Find(slices.DeleteFunc(objects, others), kind, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
