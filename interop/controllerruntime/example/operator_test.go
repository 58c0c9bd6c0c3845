package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/localapi"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	m.Run()
}

// kubeconfig names a cluster to test on instead of an embedded one. The test creates namespaces shop-0 to shop-3 there.
var kubeconfig = flag.String("on", "", "kubeconfig of the cluster to test on")

// TestOperator runs two replicas of the operator with each set of parts through the same steps, and compares the cards.
func TestOperator(t *testing.T) {
	var outcomes [4]map[string]string
	for i, o := range []parts{
		{name: "controller-runtime", make: ctrl.NewManager},
		{name: "flyball's parts", make: ctrl.NewManager, Options: Options{Flyball: true}},
		{name: "the same, lean", make: ctrl.NewManager, Options: Options{Flyball: true, Lean: true}},
		{name: "flyball's manager", make: flyballs},
	} {
		t.Run(o.name, func(t *testing.T) {
			if *kubeconfig == "" {
				outcomes[i] = life(t, localapi.NewTest(t).RESTConfig(), "shop", o)
				return
			}
			config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			outcomes[i] = life(t, config, fmt.Sprintf("shop-%d", i), o)
		})
	}
	for _, cards := range outcomes[1:] {
		if !maps.Equal(outcomes[0], cards) || len(cards) == 0 {
			t.Errorf("cards of controller-runtime %v, of others %v", outcomes[0], cards)
		}
	}
}

// parts are what an operator is made of.
type parts struct {
	name string
	Options
	make func(*rest.Config, ctrl.Options) (ctrl.Manager, error)
}

func flyballs(config *rest.Config, o ctrl.Options) (ctrl.Manager, error) {
	return controllerruntime.NewManager(config, o)
}

// TestRunOnce runs the operator as --once does, twice. The second run finds nothing to do.
func TestRunOnce(t *testing.T) {
	api := localapi.NewTest(t, deployment("default", "web", false))
	for _, wanted := range []bool{true, false} {
		api.Audit().Reset()
		summary, err := once(t.Context(), api.RESTConfig())
		if err != nil || summary.Processed < 1 {
			t.Errorf("%+v, %v", summary, err)
		}
		var count int
		for _, e := range api.Audit().Entries(nil) {
			if e.Verb != "get" && e.Verb != "list" && e.Verb != "watch" {
				count++
			}
		}
		if (count > 0) != wanted {
			t.Errorf("%d writes", count)
		}
	}
}

// replica starts a replica and returns a function that stops it.
func replica(t *testing.T, config *rest.Config, o parts) (stop func()) {
	t.Helper()
	options := ctrl.Options{
		Metrics:        server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "cards", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: true,
		// The lease is released: nobody waits for its end, and nobody loses it on a machine that has much to do.
		LeaseDuration: new(time.Minute), RenewDeadline: new(40 * time.Second), RetryPeriod: new(100 * time.Millisecond),
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	}
	o.Apply(&options)
	mgr, err := o.make(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := (&Cards{mgr.GetClient()}).SetupWithManager(ctx, mgr, o.Options); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// life changes some Deployments of a namespace while replicas come and go. It returns the cards at the end.
func life(t *testing.T, config *rest.Config, shop string, o parts) map[string]string {
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	one := replica(t, config, o)
	must(
		c.Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop, Labels: map[string]string{"team": "red"}}}),
	)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "key"},
		Data:       map[string][]byte{"k": []byte("1")},
	}
	must(c.Create(ctx, secret))
	for i := range 20 {
		must(c.Create(ctx, deployment(shop, fmt.Sprintf("web-%d", i), i%2 == 0)))
	}
	eventually(t, c, shop, 20,
		func(card *corev1.ConfigMap) bool { return card.Data["image"] == "web:1" && card.Data["team"] == "red" })
	two := replica(t, config, o)
	secret.Data["k"] = []byte("2")
	must(c.Update(ctx, secret))
	one() // The other takes over.
	var ns corev1.Namespace
	must(c.Get(ctx, client.ObjectKey{Name: shop}, &ns))
	ns.Labels["team"] = "blue"
	must(c.Update(ctx, &ns))
	must(c.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web-3"},
		Spec: corev1.ServiceSpec{
			ClusterIP: "None", Selector: map[string]string{"app": "web-3"},
			Ports: []corev1.ServicePort{{Port: 80}},
		},
	}))
	var d appsv1.Deployment
	must(c.Get(ctx, client.ObjectKey{Namespace: shop, Name: "web-4"}, &d))
	d.Spec.Template.Spec.Containers[0].Image = "web:2"
	must(c.Update(ctx, &d))
	must(c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web-5-card"}}))
	eventually(t, c, shop, 20, func(card *corev1.ConfigMap) bool {
		return card.Data["team"] == "blue" && (card.Name != "web-3-card" || card.Data["address"] == "None") &&
			(card.Name != "web-4-card" || card.Data["image"] == "web:2")
	})
	two()
	cards := map[string]string{}
	var list corev1.ConfigMapList
	must(c.List(ctx, &list, client.InNamespace(shop)))
	for _, card := range list.Items {
		if len(card.OwnerReferences) > 0 { // Not the root certificate that a cluster puts everywhere.
			cards[card.Name] = fmt.Sprint(card.Data)
		}
	}
	return cards
}

func deployment(shop, name string, secret bool) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}}
	if secret {
		d.Annotations = map[string]string{secretAnnotation: "key"}
	}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web:1"}}},
	}
	return d
}

// eventually waits until there are n cards and all are right.
func eventually(t *testing.T, c client.Client, shop string, n int, right func(*corev1.ConfigMap) bool) {
	t.Helper()
	var list corev1.ConfigMapList
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err := c.List(t.Context(), &list, client.InNamespace(shop)); err != nil {
			t.Fatal(err)
		}
		good := 0
		for i := range list.Items {
			if len(list.Items[i].OwnerReferences) > 0 && right(&list.Items[i]) {
				good++
			}
		}
		if good == n {
			return
		}
	}
	for _, card := range list.Items {
		t.Logf("%s: %v", card.Name, card.Data)
	}
	t.Fatal("not all cards are there and right")
}
