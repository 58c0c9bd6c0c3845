package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDemoOnCluster plays the story on a cluster that another process serves, with other images than the usual ones.
func TestDemoOnCluster(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	kubeconfig, stop := startServe(ctx, t)
	defer stop()
	configOf(ctx, t, kubeconfig)
	code, out, errs := flyball(ctx, "demo", "--kubeconfig", kubeconfig, "--images", "web:1,registry:5000/web")
	if code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, errs, out)
	}
	rows := regexp.MustCompile(`(?m)^\d  .* watch +\d+  +\S+s$`).FindAllString(out, -1)
	if len(rows) != 7 || !strings.Contains(out, "\ndemo: ok: ") {
		t.Errorf("%d steps are shown, want 7:\n%s", len(rows), out)
	}
	for _, words := range []string{
		"5 × web:1 ", "roll back to registry:5000/web ", "registry:5000/web:does-not-exist,",
	} {
		if !strings.Contains(out, words) {
			t.Errorf("the story does not mention %q:\n%s", words, out)
		}
	}
	demoIsGone(ctx, t, kubeconfig)
}

// An interrupted demo leaves nothing on the cluster either.
func TestInterruptedDemoOnCluster(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	kubeconfig, stop := startServe(ctx, t, "--kubelet=off")
	defer stop()
	configOf(ctx, t, kubeconfig)
	playing, interrupt := context.WithCancel(ctx)
	defer interrupt()
	c := clientOf(ctx, t, kubeconfig)
	go func() { // when the demo has made its Deployment
		defer interrupt()
		deployments, err := c.AppsV1().Deployments("").Watch(playing, metav1.ListOptions{})
		if err == nil {
			<-deployments.ResultChan()
			deployments.Stop()
		}
	}()
	var out, errs bytes.Buffer
	code := run(playing, []string{"demo", "--kubeconfig", kubeconfig}, &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), `stopped at "create Service and Deployment web`) {
		t.Errorf("exit code %d: %s", code, &errs)
	}
	demoIsGone(ctx, t, kubeconfig)
}

// demoIsGone waits until there is no namespace of the demo.
func demoIsGone(ctx context.Context, t *testing.T, kubeconfig string) {
	t.Helper()
	c := clientOf(ctx, t, kubeconfig).CoreV1().Namespaces()
	for {
		list, err := c.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		left := ""
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, "flyball-demo-") {
				left = list.Items[i].Name
			}
		}
		if left == "" {
			return
		}
		changes, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatalf("%s is left: %v", left, err)
		}
		<-changes.ResultChan()
		changes.Stop()
	}
}
