package endpointslice_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
)

// A Service gets its first EndpointSlice, which has no endpoints yet.
func ExampleNew() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	clientset := kubernetes.NewForConfigOrDie(server.RESTConfig())
	m, err := manager.New(server.RESTConfig(), manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	controller, err := endpointslice.New(m.GetClient(), m.Informers(), m.GetEventRecorderFor(endpointslice.Component),
		endpointslice.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := m.Add(controller); err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()

	web := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Port: 80}},
		},
	}
	_, _ = clientset.CoreV1().Services("default").Create(ctx, web, metav1.CreateOptions{})
	for {
		list, err := clientset.DiscoveryV1().EndpointSlices("default").List(ctx,
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		if err == nil && len(list.Items) == 1 {
			slice := list.Items[0]
			fmt.Println(slice.GenerateName, slice.AddressType, slice.Labels["endpointslice.kubernetes.io/managed-by"],
				len(slice.Endpoints))
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	fmt.Println("run:", <-done)
	// Output:
	// web- IPv4 endpointslice-controller.k8s.io 0
	// run: <nil>
}
