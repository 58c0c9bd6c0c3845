package deployment_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/informer"
)

// A plan is made from objects alone: no cluster is needed to know what the controller would do.
func ExamplePlan() {
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web:1"}}},
			},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		},
	}
	plan, err := deployment.Plan(deployment.Observed{Deployment: web, Now: time.Now()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)
	// Output:
	// create web-6769df47cb replicas=3 desired-replicas=3 max-replicas=3 revision=1 [Normal ScalingReplicaSet: Scaled up replica set web-6769df47cb from 0 to 3]
	// status generation=0 replicas=0 updated=0 ready=0 available=0 unavailable=0 revision=1
	// status generation=1 replicas=0 updated=0 ready=0 available=0 unavailable=3 terminating=0 revision=1 Available=False/MinimumReplicasUnavailable
}

// New takes the informers of a factory, which runs beside the controller.
func ExampleNew() {
	config := &rest.Config{Host: "https://cluster.example"}
	factory, err := informer.NewFactory(config, informer.FactoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	writer, err := client.New(config, client.Options{Informers: factory})
	if err != nil {
		fmt.Println(err)
		return
	}
	broadcaster, err := events.New(config, events.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}

	controller, err := deployment.New(writer, factory, broadcaster.Recorder(deployment.Name),
		deployment.Options{Workers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Now run factory, broadcaster and controller, each with Run(ctx), or give the controller to a manager.
	fmt.Println(controller.Name(), "health:", controller.Health())
	// Output:
	// deployment-controller health: controller deployment-controller: not running
}
