package endpointslicemirroring_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/controllers/endpointslicemirroring"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
)

// A database outside the cluster gets a Service without a selector, and Endpoints that are written by hand. The
// controller copies them into an EndpointSlice.
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
	controller, err := endpointslicemirroring.New(m.GetClient(), m.Informers(),
		m.GetEventRecorderFor(endpointslicemirroring.Component), endpointslicemirroring.Options{})
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

	_, _ = clientset.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5432}}},
	}, metav1.CreateOptions{})
	_, _ = clientset.CoreV1().Endpoints("default").Create(ctx, &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: "192.0.2.7"}}, Ports: []corev1.EndpointPort{{Port: 5432}},
		}},
	}, metav1.CreateOptions{})
	for {
		list, err := clientset.DiscoveryV1().EndpointSlices("default").List(ctx,
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=db"})
		if err == nil && len(list.Items) == 1 {
			slice := list.Items[0]
			fmt.Println(slice.GenerateName, slice.AddressType, slice.Endpoints[0].Addresses, *slice.Ports[0].Port)
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	fmt.Println("run:", <-done)
	// Output:
	// db- IPv4 [192.0.2.7] 5432
	// run: <nil>
}
