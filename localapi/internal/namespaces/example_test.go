package namespaces_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/internal/namespaces"
)

// A namespace gets its service account, and when it is deleted, it is emptied.
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
	controller, err := namespaces.New(c, server.RESTConfig(), factory, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- factory.Run(ctx) }()
	go func() { done <- controller.Run(ctx) }()

	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	_ = c.Create(ctx, shop)
	until(func() bool {
		account := client.ObjectKey{Namespace: "shop", Name: "default"}
		return c.Get(ctx, account, &corev1.ServiceAccount{}) == nil
	})
	fmt.Println("there is a service account")
	_ = c.Delete(ctx, shop)
	until(func() bool {
		return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(shop), shop))
	})
	fmt.Println("the namespace is gone")
	stop()
	fmt.Println("run:", <-done, <-done)
	// Output:
	// there is a service account
	// the namespace is gone
	// run: <nil> <nil>
}

func until(done func() bool) {
	for !done() {
		time.Sleep(time.Millisecond)
	}
}
