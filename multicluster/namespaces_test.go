package multicluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// If clusters are namespaces of one server, a cluster's cache holds the objects of its namespace, and all
// cluster-scoped objects.
func TestFleetOfNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := func(ns string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x"}}
		}
		tenant := func(ns string) *corev1.Namespace {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		api := localapi.NewTest(t, tenant("red"), tenant("blue"), config("red"), config("blue"), config("default"),
			node)
		local, err := manager.New(api.RESTConfig(), manager.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var namespaces announced
		for _, ns := range []string{"red", "blue"} {
			namespaces = append(namespaces,
				multicluster.Announcement{Name: ns, Config: api.RESTConfig(), Namespace: ns})
		}
		fleet, err := multicluster.New(local, multicluster.Options{Providers: []multicluster.Provider{namespaces}})
		if err != nil {
			t.Fatal(err)
		}
		seen := make(chan string, 10)
		err = multicluster.ControllerManagedBy(fleet).For(
			&corev1.ConfigMap{},
		).Complete(reconcile.Func[multicluster.Request](
			func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
				c, _ := multicluster.ClusterFromContext(ctx)
				var maps corev1.ConfigMapList
				var nodes corev1.NodeList
				if err := c.List(ctx, &maps); err != nil || len(maps.Items) != 1 ||
					maps.Items[0].Namespace != r.Cluster {
					t.Errorf("%s sees %d config maps, %v", r.Cluster, len(maps.Items), err)
				}
				if err := c.List(ctx, &nodes); err != nil || len(nodes.Items) != 1 {
					t.Errorf("%s sees %d nodes, %v", r.Cluster, len(nodes.Items), err)
				}
				seen <- r.String()
				return reconcile.Result{}, c.Get(ctx, client.ObjectKey{Name: r.Cluster}, &corev1.Namespace{})
			}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		done := make(chan error)
		go func() { done <- local.Run(ctx) }()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		all := map[string]bool{}
		for range len(seen) {
			all[<-seen] = true
		}
		if len(all) != 2 || !all["cluster://red/red/x"] || !all["cluster://blue/blue/x"] {
			t.Errorf("reconciled %v", all)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
