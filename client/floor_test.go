package client_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
)

// TestWritesToOtherNamespacesAreNotWaitedFor: a cache is created after writes to several namespaces. Reads of a
// namespace without changes do not wait for the writes to other namespaces, and they show the writes to their own.
func TestWritesToOtherNamespacesAreNotWaitedFor(t *testing.T) {
	for _, others := range []int{1, 1500} {
		synctest.Test(t, func(t *testing.T) {
			api, err := localapi.New(localapi.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer api.Close()
			for _, name := range []string{"quiet", "a"} {
				if err := api.Seed(t.Context(),
					&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
					t.Fatal(err)
				}
			}
			factory, err := informer.NewFactory(api.RESTConfig(),
				informer.FactoryOptions{Namespaces: []string{"quiet"}})
			if err != nil {
				t.Fatal(err)
			}
			config := api.RESTConfig()
			config.QPS = -1
			c, err := client.New(config, client.Options{Informers: factory, StaleAfter: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
			var wg sync.WaitGroup
			wg.Go(func() { _ = factory.Run(ctx) })
			defer wg.Wait()
			defer stop()
			write := func(namespace, name string) {
				m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
				if err := c.Create(ctx, m); err != nil {
					t.Fatal(err)
				}
			}
			write("quiet", "mine")
			for i := range others {
				if i > 0 {
					ns := fmt.Sprint("n-", i)
					if err := api.Seed(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
						t.Fatal(err)
					}
					write(ns, "x")
				}
			}
			// The cache is created while a write to a namespace that it does not follow is under way.
			other, err := informer.ForOptions[*corev1.ConfigMap](factory, informer.InformerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := other.WaitForSync(ctx); err != nil {
				t.Fatal(err)
			}
			write("a", "x")
			var list corev1.ConfigMapList
			began := time.Now()
			if err := c.List(ctx, &list, client.InNamespace("quiet")); err != nil || time.Since(began) > 0 &&
				others == 1 {
				t.Errorf("%d namespaces: %v after %v", others, err, time.Since(began))
			}
			if others == 1 && len(list.Items) != 1 {
				t.Errorf("%d namespaces: %d objects", others, len(list.Items))
			}
		})
	}
}
