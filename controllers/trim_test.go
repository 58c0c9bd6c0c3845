package controllers_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

// A cache that is trimmed has all but the managed fields, and what is written from it leaves those on the server alone.
func TestTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{Informers: informer.FactoryOptions{Transform: controllers.Trim}})
		services, err := informer.For[*corev1.Service](m.Informers())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		api := m.Client().CoreV1().Services("default")
		made, err := api.Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{FieldManager: "author"})
		if err != nil || len(made.ManagedFields) != 1 {
			t.Fatalf("managed fields %v, %v", made.ManagedFields, err)
		}
		synctest.Wait()
		cached, found := services.Get("default", "web")
		if !found || cached.ManagedFields != nil {
			t.Fatalf("found %v, managed fields %v", found, cached.GetManagedFields())
		}
		untrimmed := made.DeepCopy()
		untrimmed.ManagedFields = nil
		want, _ := json.Marshal(untrimmed)
		if got, _ := json.Marshal(cached); string(got) != string(want) {
			t.Errorf("cached:\n%s\nwant:\n%s", got, want)
		}
		written := cached.DeepCopy()
		written.Labels = map[string]string{"a": "b"}
		updated, err := api.Update(ctx, written, metav1.UpdateOptions{FieldManager: "editor"})
		if err != nil || len(updated.ManagedFields) != 2 || updated.ManagedFields[0].Manager != "author" {
			t.Errorf("after the update: %v, %v", updated.ManagedFields, err)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
