package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cluster"
	"github.com/flyball-dev/flyball/localapi/kubelet"
)

// TestCluster: with all parts, a pod with an owner runs in a new namespace, and all goes with the namespace.
func TestCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTest(t)
		c, err := cluster.New(server.RESTConfig(), cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		core := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1()
		settle := func() { time.Sleep(time.Minute) }

		shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
		if _, err := core.Namespaces().Create(ctx, shop, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		owner, err := core.ConfigMaps("shop").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		child := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "child", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
			}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
		}
		if _, err := core.Pods("shop").Create(ctx, child, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		settle()
		if pod, err := core.Pods("shop").Get(ctx, "child", metav1.GetOptions{}); err != nil ||
			pod.Status.Phase != corev1.PodRunning {
			t.Errorf("the pod: %v, %v", pod.Status.Phase, err)
		}
		if _, err := core.ServiceAccounts("shop").Get(ctx, "default", metav1.GetOptions{}); err != nil {
			t.Errorf("the service account: %v", err)
		}
		if err := core.ConfigMaps("shop").Delete(ctx, "owner", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		settle()
		if _, err := core.Pods("shop").Get(ctx, "child", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the pod whose owner is gone: %v", err)
		}
		if err := core.Namespaces().Delete(ctx, "shop", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		settle()
		if _, err := core.Namespaces().Get(ctx, "shop", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the deleted namespace: %v", err)
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// TestPodsCanBeSeenToTerminate by who looks every tenth of a second, unless the pod is not to be waited for.
func TestPodsCanBeSeenToTerminate(t *testing.T) {
	for _, c := range []struct {
		stop  time.Duration // option
		grace *int64        // of the deletion; nil: the pod's own
		want  time.Duration
	}{
		{0, nil, time.Second},
		{5 * time.Second, nil, 5 * time.Second},
		{time.Hour, nil, 30 * time.Second},
		{5 * time.Second, ptr.To[int64](2), 2 * time.Second},
		{0, ptr.To[int64](0), 0},
		{-1, nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := localapi.NewTest(t)
			all, err := cluster.New(server.RESTConfig(), cluster.Options{Kubelet: kubelet.Options{Stop: c.stop}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- all.Run(ctx) }()
			pods := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().Pods("default")
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
			}
			if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if err := pods.Delete(ctx, "p", metav1.DeleteOptions{GracePeriodSeconds: c.grace}); err != nil {
				t.Error(err)
			}
			begin := time.Now()
			for {
				synctest.Wait()
				p, err := pods.Get(ctx, "p", metav1.GetOptions{})
				if err != nil {
					break
				}
				if p.DeletionTimestamp == nil {
					t.Error("it is not being deleted")
				}
				time.Sleep(100 * time.Millisecond)
			}
			if seen := time.Since(begin); seen != c.want {
				t.Errorf("%+v: terminating for %v", c, seen)
			}
			stop()
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
}

// TestDisabledComponentsDoNothing: a component that is switched off starts nothing.
func TestDisabledComponentsDoNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTest(t)
		c, err := cluster.New(server.RESTConfig(),
			cluster.Options{NoNamespaces: true, NoGarbageCollector: true, NoKubelet: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		server.AssertNoWrites(func() { time.Sleep(time.Hour) })
		stop()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// A pod runs in a cluster that is one line.
func ExampleNew() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	c, err := cluster.New(server.RESTConfig(), cluster.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()

	pods := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().Pods("default")
	web := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
	_, _ = pods.Create(ctx, web, metav1.CreateOptions{})
	for {
		if pod, err := pods.Get(ctx, "web", metav1.GetOptions{}); err == nil && pod.Status.Phase == corev1.PodRunning {
			fmt.Println(pod.Status.Phase)
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	fmt.Println("run:", <-done)
	// Output:
	// Running
	// run: <nil>
}
