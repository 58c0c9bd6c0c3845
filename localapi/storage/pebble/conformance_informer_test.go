package pebble_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
)

// testInformerFollows: in the end an informer's cache equals the collection, whatever was written beside it and however
// often its position in the history was compacted away.
func testInformerFollows(a api) {
	server, err := localapi.New(localapi.Options{Storage: a.store.Storage, Tenant: "followed"})
	a.store.fails("new server", err, nil)
	defer server.Close()
	a.config = server.RESTConfig()
	a = a.connected()
	factory, err := informer.NewFactory(a.config, informer.FactoryOptions{})
	a.store.fails("new informers", err, nil)
	maps, err := informer.For[*corev1.ConfigMap](factory)
	a.store.fails("informer", err, nil)
	ctx, stop := context.WithCancel(a.ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = factory.Run(ctx) })

	const writers, writes = 3, 40
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for n := range writes {
				m := configMap(fmt.Sprintf("m%d-%d", i, n%7), fmt.Sprint(n))
				_, err := a.maps.Create(a.ctx, m, metav1.CreateOptions{})
				if n%7 != n {
					if _, err = a.maps.Update(a.ctx, m, metav1.UpdateOptions{}); n%5 == 4 {
						err = a.maps.Delete(a.ctx, m.Name, metav1.DeleteOptions{})
					}
				}
				_ = err // a conflict, a name that is taken or gone: only the final state is compared
				if n%10 == 9 {
					if err := server.Compact(a.ctx); err != nil {
						a.t.Errorf("compact: %v", err)
					}
				}
			}
		})
	}
	writing.Wait()
	last := a.create(configMap("last", "1"))
	a.store.fails("wait for the cache", maps.WaitForResourceVersion(a.ctx, "", last.ResourceVersion), nil)
	list, err := a.client.CoreV1().ConfigMaps("").List(a.ctx, metav1.ListOptions{})
	a.store.fails("list", err, nil)
	var got, want []string
	for _, m := range maps.List("", nil) {
		got = append(got, m.Name+" "+m.ResourceVersion+" "+string(m.UID))
	}
	for _, m := range list.Items {
		want = append(want, m.Name+" "+m.ResourceVersion+" "+string(m.UID))
	}
	slices.Sort(got)
	slices.Sort(want)
	a.store.equal("the cache", got, want)
}

// testServerReopened: a server on storage that another one left has its objects, continues its versions, and gives no
// address twice.
func testServerReopened(a api) {
	service := func(name string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	before := a.create(configMap("x", "1"))
	first, err := a.client.CoreV1().Services("default").Create(a.ctx, service("first"), metav1.CreateOptions{})
	a.store.fails("create", err, nil)
	a = serve(a.store.reopened(), localapi.Options{})
	got, err := a.maps.Get(a.ctx, "x", metav1.GetOptions{})
	a.store.fails("get", err, nil)
	a.store.equal("the object", got, before)
	second, err := a.client.CoreV1().Services("default").Create(a.ctx, service("second"), metav1.CreateOptions{})
	a.store.fails("create", err, nil)
	if second.Spec.ClusterIP == first.Spec.ClusterIP || second.Spec.ClusterIP == "" {
		a.t.Errorf("two services have the address %q", second.Spec.ClusterIP)
	}
	if len(second.ResourceVersion) < len(first.ResourceVersion) || second.ResourceVersion == first.ResourceVersion {
		a.t.Errorf("version %s comes after %s", second.ResourceVersion, first.ResourceVersion)
	}
	w, err := a.maps.Watch(a.ctx,
		metav1.ListOptions{ResourceVersion: before.ResourceVersion, FieldSelector: "metadata.name=y"})
	a.store.fails("watch from before", err, nil)
	defer w.Stop()
	a.create(configMap("y", "2"))
	a.store.equal("events", a.events(w, 1), []string{"ADDED y=2"})
}
