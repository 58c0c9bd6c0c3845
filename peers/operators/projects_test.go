package operators

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/examples/operators/projects/purge"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// TestProjectsPurge empties a real kube-apiserver, which has no namespace controller beside it.
func TestProjectsPurge(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	doomed, err := upstream.Start(ctx, upstream.Options{Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := doomed.Stop(); err != nil {
			t.Error(err)
		}
	}()
	config, err := clientcmd.BuildConfigFromFlags("", doomed.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c := kubernetes.NewForConfigOrDie(config).CoreV1()
	if _, err := c.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"team", "default"} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Finalizers: []string{"example.com/hold"}}}
		if _, err := c.Secrets(namespace).Create(ctx, s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for pass := range 6 {
		left, err := purge.Pass(ctx, config, purge.Options{Force: pass > 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("pass %d found %v", pass, left)
		switch {
		case left.None() && pass > 2:
			return
		case left.None() || pass <= 2 && left.Objects != 2:
			t.Fatalf("pass %d found %v", pass, left)
		}
	}
	t.Error("it is not empty")
}
