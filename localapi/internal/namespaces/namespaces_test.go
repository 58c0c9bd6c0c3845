package namespaces_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/localapi/internal/namespaces"
)

// cluster is an API server with the controller, in a bubble.
type cluster struct {
	t          *testing.T
	ctx        context.Context
	client     kubernetes.Interface
	controller *namespaces.Controller
	log        *audit.Log
}

// inCluster runs f in a bubble with a server that g disturbs.
func inCluster(t *testing.T, g gate.Gate, f func(c *cluster)) {
	t.Helper()
	inClusterOf(t, g, nil, f)
}

// inClusterOf is inCluster with certificates to publish.
func inClusterOf(t *testing.T, g gate.Gate, rootCA []byte, f func(c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{Gate: g})
		factory, err := informer.NewFactory(server.RESTConfig(), informer.FactoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		writer, err := client.New(server.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		controller, err := namespaces.New(writer, server.RESTConfig(), factory, rootCA)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- factory.Run(ctx) }()
		go func() { done <- controller.Run(ctx) }()
		synctest.Wait()
		if err := controller.Health(); err != nil {
			t.Errorf("health: %v", err)
		}
		f(&cluster{t, ctx, kubernetes.NewForConfigOrDie(server.RESTConfig()), controller, server.Audit()})
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		}
	})
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// accepted returns how many writes of a resource the server accepted.
func (c *cluster) accepted(verb, resource, subresource string) int {
	return len(c.log.Entries(func(e audit.Entry) bool {
		return e.Verb == verb && e.Resource == resource && e.Subresource == subresource && e.Code < 300
	}))
}

// namespace creates one.
func (c *cluster) namespace(name string) {
	c.t.Helper()
	_, err := c.client.CoreV1().Namespaces().Create(c.ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	c.must(err)
	synctest.Wait()
}

func (c *cluster) delete(name string) {
	c.t.Helper()
	c.must(c.client.CoreV1().Namespaces().Delete(c.ctx, name, metav1.DeleteOptions{}))
	synctest.Wait()
}

func (c *cluster) exists(name string) bool {
	c.t.Helper()
	_, err := c.client.CoreV1().Namespaces().Get(c.ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
	return err == nil
}

// conditions are those of a namespace that are true, with their messages.
func (c *cluster) conditions(name string) string {
	c.t.Helper()
	ns, err := c.client.CoreV1().Namespaces().Get(c.ctx, name, metav1.GetOptions{})
	c.must(err)
	var list []string
	for _, condition := range ns.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			list = append(list, fmt.Sprintf("%s: %s", condition.Type, condition.Message))
		}
	}
	return strings.Join(list, "\n")
}

func (c *cluster) configMap(namespace, name string, finalizers ...string) {
	c.t.Helper()
	_, err := c.client.CoreV1().ConfigMaps(namespace).Create(c.ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}, metav1.CreateOptions{})
	c.must(err)
}

// pod creates one that is bound, and so stays until its kubelet removes it.
func (c *cluster) pod(namespace, name string, grace int64) {
	c.t.Helper()
	_, err := c.client.CoreV1().Pods(namespace).Create(c.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: "n", TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}, metav1.CreateOptions{})
	c.must(err)
}

// remove does what a kubelet does at the end of a pod.
func (c *cluster) remove(namespace, name string) {
	c.t.Helper()
	now := int64(0)
	c.must(c.client.CoreV1().Pods(namespace).Delete(c.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	synctest.Wait()
}

// Every namespace that there is gets its account, again if it is deleted; a terminating one does not.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/serviceaccount/serviceaccounts_controller.go.
func TestServiceAccounts(t *testing.T) {
	inCluster(t, nil, func(c *cluster) {
		accounts := func() (names []string) {
			list, err := c.client.CoreV1().ServiceAccounts("").List(c.ctx, metav1.ListOptions{})
			c.must(err)
			for _, sa := range list.Items {
				names = append(names, sa.Namespace+"/"+sa.Name)
			}
			slices.Sort(names)
			return names
		}
		if got := accounts(); len(got) != 4 || got[0] != "default/default" {
			t.Errorf("at the start: %v", got)
		}
		c.namespace("shop")
		c.must(c.client.CoreV1().ServiceAccounts("shop").Delete(c.ctx, "default", metav1.DeleteOptions{}))
		synctest.Wait()
		if got := accounts(); !slices.Equal(got[4:], []string{"shop/default"}) {
			t.Errorf("a new namespace has %v", got[4:])
		}
		if n := c.accepted("create", "serviceaccounts", ""); n != 6 {
			t.Errorf("created %d", n)
		}
		c.configMap("shop", "held", "example.com/hold")
		c.delete("shop")
		if got := accounts(); len(got) != 4 {
			t.Errorf("a namespace being deleted has %v", got[4:])
		}
	})
}

// What a namespace holds goes with it, and nothing else.
func TestDeletion(t *testing.T) {
	inCluster(t, nil, func(c *cluster) {
		c.namespace("shop")
		c.namespace("other")
		c.configMap("shop", "a")
		c.configMap("other", "a")
		_, err := c.client.CoreV1().Secrets("shop").Create(c.ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
		c.must(err)
		c.delete("shop")
		if c.exists("shop") {
			t.Errorf("the namespace is still there: %s", c.conditions("shop"))
		}
		left, err := c.client.CoreV1().ConfigMaps("").List(c.ctx, metav1.ListOptions{})
		c.must(err)
		if len(left.Items) != 1 || left.Items[0].Namespace != "other" {
			t.Errorf("left: %v", left.Items)
		}
		if n := c.accepted("update", "namespaces", "finalize"); n != 1 {
			t.Errorf("finalized %d", n)
		}
		for _, loop := range c.controller.Loops() {
			if s := loop.Stats(); s.Syncs == 0 {
				t.Errorf("stats %+v", s)
			}
		}
		c.namespace("shop") // the name is free
	})
}

// While there are pods nothing else is deleted, and no condition says that they remain; when the last one is gone, it
// goes on at once.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/namespace/deletion/namespaced_resources_deleter.go deleteAllContent.
func TestPodsFirst(t *testing.T) {
	inCluster(t, nil, func(c *cluster) {
		c.namespace("shop")
		c.configMap("shop", "a")
		c.pod("shop", "p", 30)
		c.pod("shop", "q", 30)
		c.delete("shop")
		pod, err := c.client.CoreV1().Pods("shop").Get(c.ctx, "p", metav1.GetOptions{})
		c.must(err)
		if pod.DeletionTimestamp == nil || *pod.DeletionGracePeriodSeconds != 30 {
			t.Errorf("the pod is not being deleted with its grace period: %v", pod.ObjectMeta)
		}
		time.Sleep(20 * time.Second)
		if _, err := c.client.CoreV1().ConfigMaps("shop").Get(c.ctx, "a", metav1.GetOptions{}); err != nil {
			t.Errorf("beside the pods: %v", err)
		}
		if got := c.conditions("shop"); got != "" {
			t.Errorf("conditions %s", got)
		}
		c.remove("shop", "p")
		if !c.exists("shop") {
			t.Error("gone with the first pod")
		}
		c.remove("shop", "q")
		if c.exists("shop") {
			t.Error("still there after the last pod")
		}
	})
}

// A pod that outstays its grace period is an error that the conditions name.
func TestPodOverdue(t *testing.T) {
	inCluster(t, nil, func(c *cluster) {
		c.namespace("shop")
		c.pod("shop", "p", 5)
		c.delete("shop")
		time.Sleep(10 * time.Second)
		want := "NamespaceDeletionContentFailure: Failed to delete all resource types, 1 remaining: " +
			"unexpected items still remain in namespace: shop for gvr: /v1, Resource=pods"
		if got := c.conditions("shop"); got != want {
			t.Errorf("conditions %s", got)
		}
		c.remove("shop", "p")
		if c.exists("shop") {
			t.Error("still there")
		}
	})
}

// Finalizers hold the namespace; it is looked at again every eight seconds.
func TestFinalizers(t *testing.T) {
	inCluster(t, nil, func(c *cluster) {
		c.namespace("shop")
		c.configMap("shop", "a", "example.com/hold")
		c.configMap("shop", "b", "example.com/hold", "example.com/other")
		c.delete("shop")
		want := "NamespaceContentRemaining: Some resources are remaining: configmaps. has 2 resource instances\n" +
			"NamespaceFinalizersRemaining: Some content in the namespace has finalizers remaining: " +
			"example.com/hold in 2 resource instances, example.com/other in 1 resource instances"
		if got := c.conditions("shop"); got != want {
			t.Errorf("conditions %s", got)
		}
		writes := func() int {
			return len(
				c.log.Entries(
					func(e audit.Entry) bool { return e.Resource == "namespaces" && e.Subresource == "status" },
				),
			)
		}
		before := writes()
		time.Sleep(20 * time.Second)
		if n := writes() - before; n != 0 {
			t.Errorf("%d writes of conditions that have not changed", n)
		}
		for _, name := range []string{"a", "b"} {
			_, err := c.client.CoreV1().ConfigMaps("shop").Patch(c.ctx, name, "application/merge-patch+json",
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			c.must(err)
		}
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if c.exists("shop") {
			t.Errorf("still there: %s", c.conditions("shop"))
		}
	})
}

// A second finalizer of the namespace itself stays: ours alone is taken away.
func TestForeignFinalizer(t *testing.T) {
	inCluster(t, nil, func(c *cluster) {
		_, err := c.client.CoreV1().Namespaces().Create(c.ctx, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: "shop"},
			Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"example.com/hold"}},
		}, metav1.CreateOptions{})
		c.must(err)
		c.delete("shop")
		ns, err := c.client.CoreV1().Namespaces().Get(c.ctx, "shop", metav1.GetOptions{})
		c.must(err)
		if !slices.Equal(ns.Spec.Finalizers, []corev1.FinalizerName{"example.com/hold"}) {
			t.Errorf("finalizers %v", ns.Spec.Finalizers)
		}
	})
}

// A server that fails is tried again, and named in the conditions meanwhile.
func TestFailingServer(t *testing.T) {
	var failing atomic.Bool
	failing.Store(true)
	g := gate.Funcs{OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
		if failing.Load() && r.Resource == "secrets" && r.Verb == "deletecollection" {
			return gate.FailWith(apierrors.NewInternalError(errors.New("no luck")))
		}
		return gate.Verdict{}
	}}
	inCluster(t, g, func(c *cluster) {
		c.namespace("shop")
		c.configMap("shop", "a")
		c.delete("shop")
		want := "NamespaceDeletionContentFailure: Failed to delete all resource types, 1 remaining: Internal error " +
			"occurred: no luck"
		if got := c.conditions("shop"); got != want {
			t.Errorf("conditions %s", got)
		}
		if _, err := c.client.CoreV1().ConfigMaps("shop").Get(c.ctx, "a",
			metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("one failure kept the rest: %v", err)
		}
		failing.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if c.exists("shop") {
			t.Errorf("still there: %s", c.conditions("shop"))
		}
	})
}

// Without deletecollection, each object is deleted by its name.
func TestEachByName(t *testing.T) {
	g := gate.Funcs{OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
		if r.Verb == "deletecollection" {
			return gate.FailWith(apierrors.NewMethodNotSupported(corev1.Resource(r.Resource), r.Verb))
		}
		return gate.Verdict{}
	}}
	inCluster(t, g, func(c *cluster) {
		c.namespace("shop")
		c.configMap("shop", "a")
		c.configMap("shop", "b")
		c.delete("shop")
		if c.exists("shop") {
			t.Errorf("still there: %s", c.conditions("shop"))
		}
	})
}
