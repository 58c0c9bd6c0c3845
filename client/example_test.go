package client_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
)

// Reads come from the cache and see earlier writes, whether the watch has brought them or not.
func ExampleNew() {
	api, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Close()
	informers, err := informer.NewFactory(api.RESTConfig(), informer.FactoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.New(api.RESTConfig(), client.Options{Informers: informers})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- informers.Run(ctx) }()

	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", GenerateName: "child-", Labels: map[string]string{"of": "me"},
	}}
	if err := c.Create(ctx, child); err != nil {
		fmt.Println(err)
	}
	var children corev1.ConfigMapList
	if err := c.List(ctx, &children, client.InNamespace("default"), client.MatchingLabels{"of": "me"}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(len(children.Items), "child")
	err = c.Delete(ctx, child)
	fmt.Println("deleted:", err)
	err = c.Get(ctx, client.ObjectKeyFromObject(child), child)
	fmt.Println("found:", client.IgnoreNotFound(err) == nil && err == nil)
	stop()
	<-done
	// Output:
	// 1 child
	// deleted: <nil>
	// found: false
}

// A reconciler reads by listers and writes by a clientset. Ready returns an error until the cache shows the child.
func ExampleTrackInformer() {
	api, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Close()
	config, err := client.ObserveWrites(api.RESTConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	informers, err := informer.NewFactory(api.RESTConfig(), informer.FactoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	maps, err := informer.For[*corev1.ConfigMap](informers)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := client.New(config, client.Options{Informers: informers})
	if err != nil {
		fmt.Println(err)
		return
	}
	client.TrackInformer(c, corev1.Resource("configmaps"), maps)

	ctx, stop := context.WithCancel(context.Background())
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "child-"}}
	child, err = clientset.CoreV1().ConfigMaps("default").Create(client.WithOwner(ctx, "owner"), child,
		metav1.CreateOptions{})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println("ready before the cache runs:", c.Ready(ctx, "owner") == nil)

	done := make(chan error)
	go func() { done <- informers.Run(ctx) }()
	if err := maps.WaitForResourceVersion(ctx, "default", child.ResourceVersion); err != nil {
		fmt.Println(err)
	}
	fmt.Println("ready when it shows the child:", c.Ready(ctx, "owner") == nil)
	stop()
	<-done
	// Output:
	// ready before the cache runs: false
	// ready when it shows the child: true
}
