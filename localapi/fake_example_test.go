package localapi_test

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/flyball-dev/flyball/localapi"
)

// mistakes makes the mistakes that a controller's test should find, and returns what the server says to each.
func mistakes(client kubernetes.Interface) []string {
	ctx := context.Background()
	maps, deployments := client.CoreV1().ConfigMaps("default"), client.AppsV1().Deployments("default")
	said := func(what string, err error) string {
		if err == nil {
			return what + ": nothing"
		}
		text, _, _ := strings.Cut(err.Error(), ": ")
		return what + ": " + text
	}

	// A Deployment whose selector does not match its own pods.
	bad := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	bad.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	_, err := deployments.Create(ctx, bad, metav1.CreateOptions{})
	answers := []string{said("invalid object", err)}

	// An update that is based on an old state.
	old, _ := maps.Get(ctx, "settings", metav1.GetOptions{})
	mine, theirs := old.DeepCopy(), old.DeepCopy()
	theirs.Data = map[string]string{"color": "blue"}
	_, _ = maps.Update(ctx, theirs, metav1.UpdateOptions{})
	mine.Data = map[string]string{"color": "red"}
	_, err = maps.Update(ctx, mine, metav1.UpdateOptions{})
	answers = append(answers, said("lost update", err))

	// Something in a namespace that does not exist.
	_, err = client.CoreV1().ConfigMaps("nowhere").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	answers = append(answers, said("no such namespace", err))

	// An object that has a finalizer, and is believed to be gone.
	_ = maps.Delete(ctx, "held", metav1.DeleteOptions{})
	_, err = maps.Get(ctx, "held", metav1.GetOptions{})
	return append(answers, said("get after delete with a finalizer", err))
}

// What the fake clientset lets pass, a test on a real API sees.
func ExampleNewTest_insteadOfAFake() {
	t := &failer{} // in a test: its t
	settings, held := configMap("settings"), configMap("held")
	settings.Namespace, held.Namespace = "default", "default"
	held.Finalizers = []string{"example.com/cleanup"}

	for _, line := range mistakes(fake.NewSimpleClientset(settings, held)) {
		fmt.Println("fake:", line)
	}
	for _, line := range mistakes(kubernetes.NewForConfigOrDie(localapi.NewTest(t, settings, held).RESTConfig())) {
		fmt.Println("ours:", line)
	}
	for _, c := range t.cleanups {
		c()
	}
	// Output:
	// fake: invalid object: nothing
	// fake: lost update: nothing
	// fake: no such namespace: nothing
	// fake: get after delete with a finalizer: configmaps "held" not found
	// ours: invalid object: Deployment.apps "web" is invalid
	// ours: lost update: Operation cannot be fulfilled on configmaps "settings"
	// ours: no such namespace: namespaces "nowhere" not found
	// ours: get after delete with a finalizer: nothing
}
