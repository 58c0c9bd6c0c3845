package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
)

// The greeting is made, repaired, made again after somebody deleted it, and otherwise left alone.
func TestGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		api := localapi.NewTest(t, deployment)
		mgr, err := newManager(api.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		done := make(chan error)
		go func() { done <- mgr.Run(ctx) }()
		them, err := client.New(api.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		greeting := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-greeting"}}
		steps := []func() error{
			func() error { return nil },
			func() error { greeting.Data["text"] = "go away"; return them.Update(ctx, greeting) },
			func() error { return them.Delete(ctx, greeting) },
		}
		for i, step := range steps {
			if err := step(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			err := them.Get(ctx, client.ObjectKeyFromObject(greeting), greeting)
			if err != nil || greeting.Data["text"] != "hello, web" || metav1.GetControllerOf(greeting).Name != "web" {
				t.Errorf("step %d: %v, %+v", i, err, greeting)
			}
		}
		api.Audit().Reset()
		time.Sleep(24 * time.Hour)
		if idle := api.Audit().Writes(); len(idle) != 0 {
			t.Errorf("an idle day: %v", idle)
		}
		if err := them.Delete(ctx, deployment); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		// Nobody collects garbage here: the greeting stays, and the controller of nothing makes none.
		if err := them.Delete(ctx, greeting); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := them.Get(ctx, client.ObjectKeyFromObject(greeting), greeting); !apierrors.IsNotFound(err) {
			t.Errorf("a greeting without its Deployment: %v, %v", err, greeting.Data)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
