package events_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/flyball-dev/flyball/client/events"
)

func ExampleNew() {
	client := fake.NewClientset()
	broadcaster := events.New(client.CoreV1(), events.Options{})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- broadcaster.Run(ctx) }()

	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	recorder := broadcaster.Recorder("endpoints-controller")
	recorder.Eventf(web, corev1.EventTypeWarning, "FailedToUpdateEndpoint", "no endpoints for %s", web.Name)

	stop() // the event is still queued: stopping sends it
	fmt.Println("run:", <-done)
	list, _ := client.CoreV1().Events("default").List(context.Background(), metav1.ListOptions{})
	for _, e := range list.Items {
		fmt.Println(e.Source.Component, e.Type, e.Reason, e.Message)
	}
	// Output:
	// run: <nil>
	// endpoints-controller Warning FailedToUpdateEndpoint no endpoints for web
}
