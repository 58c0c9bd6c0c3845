package garbagecollector_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
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
	c, err1 := client.New(server.RESTConfig(), client.Options{})
	sender, err2 := events.New(server.RESTConfig(), events.Options{})
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		return
	}
	gc, err := garbagecollector.New(server.RESTConfig(), sender.Recorder(garbagecollector.Component),
		garbagecollector.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- gc.Run(ctx) }()

	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	_ = c.Create(ctx, owner)
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "child",
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
		},
	}}
	_ = c.Create(ctx, child)
	_ = c.Delete(ctx, owner)
	for {
		if err := c.Get(ctx, client.ObjectKeyFromObject(child), child); apierrors.IsNotFound(err) {
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
