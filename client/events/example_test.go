package events_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/localapi"
)

func ExampleNew() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	broadcaster, err := events.New(server.RESTConfig(), events.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- broadcaster.Run(ctx) }()

	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	recorder := broadcaster.Recorder("endpoints-controller")
	recorder.Eventf(web, corev1.EventTypeWarning, "FailedToUpdateEndpoint", "no endpoints for %s", web.Name)

	stop() // the event is still queued: stopping sends it
	fmt.Println("run:", <-done)
	c, err := client.New(server.RESTConfig(), client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var list corev1.EventList
	err = c.List(context.Background(), &list, client.InNamespace("default"))
	if err != nil {
		fmt.Println(err)
	}
	for _, e := range list.Items {
		fmt.Println(e.Source.Component, e.Type, e.Reason, e.Message)
	}
	// Output:
	// run: <nil>
	// endpoints-controller Warning FailedToUpdateEndpoint no endpoints for web
}
