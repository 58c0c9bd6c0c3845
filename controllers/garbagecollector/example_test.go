package garbagecollector_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/localapi"
)

// A ConfigMap is deleted because its owner is.
func ExampleNew() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client := kubernetes.NewForConfigOrDie(server.RESTConfig())
	gc, err := garbagecollector.New(garbagecollector.Config{
		Client:   client,
		Metadata: metadata.NewForConfigOrDie(server.RESTConfig()),
		Recorder: events.New(client.CoreV1(), events.Options{}).Recorder(garbagecollector.Component),
	}, garbagecollector.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- gc.Run(ctx) }()

	maps := client.CoreV1().ConfigMaps("default")
	owner, _ := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}},
		metav1.CreateOptions{})
	_, _ = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "child",
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
		},
	}}, metav1.CreateOptions{})
	_ = maps.Delete(ctx, "owner", metav1.DeleteOptions{})
	for {
		if _, err := maps.Get(ctx, "child", metav1.GetOptions{}); apierrors.IsNotFound(err) {
			fmt.Println("child is gone")
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	fmt.Println("run:", <-done)
	// Output:
	// child is gone
	// run: <nil>
}
