package kubelet_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/kubelet"
)

// A pod is bound and runs.
func ExampleNew() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	c, err := client.New(server.RESTConfig(), client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	factory, err := informer.NewFactory(server.RESTConfig(), informer.FactoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes, err := kubelet.New(c, factory, kubelet.Options{Nodes: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- factory.Run(ctx) }()
	go func() { done <- nodes.Run(ctx) }()

	web := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
	_ = c.Create(ctx, web)
	for {
		err := c.Get(ctx, client.ObjectKeyFromObject(web), web)
		if err == nil && web.Status.Phase == corev1.PodRunning {
			fmt.Println(web.Status.Phase, web.Spec.NodeName, web.Status.PodIP)
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	fmt.Println("run:", <-done, <-done)
	// Output:
	// Running node-1 10.244.0.1
	// run: <nil> <nil>
}
