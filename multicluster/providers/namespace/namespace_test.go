package namespace_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/fleettest"
	"github.com/flyball-dev/flyball/multicluster/providers/namespace"
)

// tenant returns a namespace with the label tenant=yes.
func tenant(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tenant": "yes"}}}
}

func ExampleNew() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	if err := server.Seed(ctx, tenant("red"), tenant("blue")); err != nil {
		log.Fatal(err)
	}
	local, err := manager.New(server.RESTConfig(), manager.Options{})
	if err != nil {
		log.Fatal(err)
	}
	provider, err := namespace.New(local, namespace.Options{LabelSelector: "tenant=yes"})
	if err != nil {
		log.Fatal(err)
	}
	fleet := &fleettest.Fleet{OnSynced: cancel} // takes the place of a multicluster.Manager's
	done := make(chan error)
	go func() { done <- local.Run(ctx) }()
	fmt.Println(provider.Run(ctx, fleet), <-done, fleet.Names())
	// Output: <nil> <nil> blue red
}

// inWorld runs test with a provider of the namespaces with tenant=yes.
func inWorld(t *testing.T, test func(ctx context.Context, c kubernetes.Interface, fleet *fleettest.Fleet)) {
	synctest.Test(t, func(t *testing.T) {
		api := localapi.NewTest(t)
		local, err := manager.New(api.RESTConfig(), manager.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := namespace.New(local, namespace.Options{LabelSelector: "tenant=yes"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		done, fleet := make(chan error, 2), &fleettest.Fleet{}
		go func() { done <- local.Run(ctx) }()
		go func() { done <- p.Run(ctx, fleet) }()
		wants(t, fleet, "synced")
		test(ctx, api.Client(), fleet)
		if err := p.Health(); err != nil {
			t.Error(err)
		}
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// wants checks the fleet's records since the last call.
func wants(t *testing.T, fleet *fleettest.Fleet, want string) {
	t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	if got := fleet.Log(); got != want {
		t.Errorf("the fleet heard %q, want %q", got, want)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestNamespacesAreClusters(t *testing.T) {
	inWorld(t, func(ctx context.Context, c kubernetes.Interface, fleet *fleettest.Fleet) {
		namespaces := c.CoreV1().Namespaces()
		red := must[*corev1.Namespace](t)(namespaces.Create(ctx, tenant("red"), metav1.CreateOptions{}))
		wants(t, fleet, "join red")
		if a, err := fleet.Cluster("red"); err != nil || a.Namespace != "red" || a.Identity != string(red.UID) ||
			a.Labels["tenant"] != "yes" {
			t.Errorf("the cluster is %+v, %v", a, err)
		}
		red.Labels["tenant"] = "no"
		red = must[*corev1.Namespace](t)(namespaces.Update(ctx, red, metav1.UpdateOptions{}))
		wants(t, fleet, "leave red")
		red.Labels["tenant"] = "yes"
		must[*corev1.Namespace](t)(namespaces.Update(ctx, red, metav1.UpdateOptions{}))
		wants(t, fleet, "join red")
	})
}

// A controller must be able to remove finalizers in a namespace that is being deleted, so the namespace stays a
// cluster.
func TestATerminatingNamespaceStaysUntilItIsGone(t *testing.T) {
	inWorld(t, func(ctx context.Context, c kubernetes.Interface, fleet *fleettest.Fleet) {
		namespaces := c.CoreV1().Namespaces()
		must[*corev1.Namespace](t)(namespaces.Create(ctx, tenant("red"), metav1.CreateOptions{}))
		wants(t, fleet, "join red")
		if err := namespaces.Delete(ctx, "red", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		wants(t, fleet, "")
		red := must[*corev1.Namespace](t)(namespaces.Get(ctx, "red", metav1.GetOptions{}))
		if red.DeletionTimestamp == nil {
			t.Fatal("the namespace is not terminating")
		}
		red.Spec.Finalizers = nil
		must[*corev1.Namespace](t)(namespaces.Finalize(ctx, red, metav1.UpdateOptions{}))
		wants(t, fleet, "leave red")
		must[*corev1.Namespace](t)(namespaces.Create(ctx, tenant("red"), metav1.CreateOptions{}))
		wants(t, fleet, "join red")
		if a, err := fleet.Cluster("red"); err != nil || a.Identity == string(red.UID) {
			t.Errorf("the successor is %+v, %v", a, err)
		}
	})
}

func TestANamespaceDoesNotReachItsNeighbour(t *testing.T) {
	inWorld(t, func(ctx context.Context, c kubernetes.Interface, fleet *fleettest.Fleet) {
		for _, name := range []string{"red", "blue"} {
			must[*corev1.Namespace](t)(c.CoreV1().Namespaces().Create(ctx, tenant(name), metav1.CreateOptions{}))
		}
		wants(t, fleet, "join red; join blue")
		a, err := fleet.Cluster("red")
		if err != nil {
			t.Fatal(err)
		}
		confined := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(a.Config)).CoreV1()
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		must[*corev1.ConfigMap](t)(confined.ConfigMaps("red").Create(ctx, config, metav1.CreateOptions{}))
		must[*corev1.Namespace](t)(confined.Namespaces().Get(ctx, "red", metav1.GetOptions{}))
		must[*corev1.NodeList](t)(confined.Nodes().List(ctx, metav1.ListOptions{}))
		const want = `the cluster is namespace "red": no access to namespace "blue"`
		if _, err := confined.ConfigMaps("blue").Create(ctx, config, metav1.CreateOptions{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("a create: %v", err)
		}
		if _, err := confined.Namespaces().Get(ctx, "blue", metav1.GetOptions{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("a get of the namespace: %v", err)
		}
	})
}

func TestInvalidSelector(t *testing.T) {
	if _, err := namespace.New(nil, namespace.Options{LabelSelector: "!!"}); err == nil {
		t.Error("it is taken")
	}
}
