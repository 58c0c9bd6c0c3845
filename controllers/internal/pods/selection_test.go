package pods_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
)

// For every selector, the index finds the same pods as a scan of all pods.
func TestSelected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTest(t)
		factory, err := informer.NewFactory(server.RESTConfig(), informer.FactoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		inf, err := informer.For[*corev1.Pod](factory)
		if err != nil {
			t.Fatal(err)
		}
		if err := pods.AddLabelIndex(inf); err != nil {
			t.Fatal(err)
		}
		if err := pods.AddLabelIndex(inf); err != nil {
			t.Errorf("a second time: %v", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- factory.Run(ctx) }()
		c, err := client.New(server.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 24 {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: []string{"default", "kube-system"}[i/12],
					Name:      fmt.Sprint("p", i),
					Labels:    map[string]string{"app": []string{"web", "api"}[i%2], "tier": fmt.Sprint(i % 3)},
				},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			}
			if i%4 == 0 {
				pod.Labels = nil
			}
			if err := c.Create(ctx, pod); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for _, text := range []string{
			"", "app=web", "app==web,tier=1", "tier in (2),app", "app in (web,api)", "!app", "app!=web",
			"tier=1,app!=web", "app=none", "other=x",
		} {
			selector, err := labels.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := pods.Selected(inf, "default", selector)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := names(got), names(inf.List("default", selector)); !slices.Equal(got, want) {
				t.Errorf("%q finds %v, want %v", text, got, want)
			}
		}
		if got, err := pods.Selected(inf, "default", labels.Nothing()); err != nil || len(got) > 0 {
			t.Errorf("a selector of nothing finds %v, %v", names(got), err)
		}
		stop()
		<-done
	})
}

func names(all []*corev1.Pod) []string {
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}
