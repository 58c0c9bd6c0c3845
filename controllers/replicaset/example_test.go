package replicaset_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
)

// The controller on an embedded API: a ReplicaSet is created, and its pods appear.
func ExampleNew() {
	server, err := localapi.New(localapi.Options{})
	check(err)
	defer server.Close()
	clientset := kubernetes.NewForConfigOrDie(server.RESTConfig())
	informers, err := informer.NewFactory(server.RESTConfig(), informer.FactoryOptions{})
	check(err)
	writer, err := client.New(server.RESTConfig(), client.Options{Informers: informers})
	check(err)
	sender, err := events.New(server.RESTConfig(), events.Options{})
	check(err)

	controller, err := replicaset.New(writer, informers, sender.Recorder(replicaset.Name), replicaset.Options{})
	check(err)

	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { check(informers.Run(ctx)) })
	running.Go(func() { check(sender.Run(ctx)) })
	running.Go(func() { check(controller.Run(ctx)) })

	labels := map[string]string{"app": "web"}
	_, err = clientset.AppsV1().ReplicaSets("default").Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		},
	}, metav1.CreateOptions{})
	check(err)
	for {
		set, err := clientset.AppsV1().ReplicaSets("default").Get(ctx, "web", metav1.GetOptions{})
		check(err)
		if set.Status.Replicas == 3 {
			fmt.Println(set.Name, "has", set.Status.Replicas, "pods,", set.Status.ReadyReplicas, "of them ready")
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	running.Wait()
	// Output: web has 3 pods, 0 of them ready
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
