package envtest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/flyball-dev/flyball/localapi/envtest"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// TestPodsAreSeenBeforeTheyAreGone: between the mark and the removal of a pod a watcher has time to look, and the
// user's gate sees every request and frame.
func TestPodsAreSeenBeforeTheyAreGone(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	var requests, frames atomic.Int32
	e := &envtest.Environment{Gate: gate.Funcs{
		OnRequest: func(context.Context, *gate.Request) gate.Verdict { requests.Add(1); return gate.Verdict{} },
		OnFrame: func(context.Context, *gate.Request, gate.Frame) gate.Verdict {
			frames.Add(1)
			return gate.Verdict{}
		},
	}}
	start(t, e)
	pods := clientFor(t, e.Config).CoreV1().Pods("default")
	w, err := pods.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := time.Now() // On a busy machine, both events may arrive at once.
	if err := pods.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	marked := false
	for event := range w.ResultChan() {
		switch pod := event.Object.(*corev1.Pod); {
		case event.Type == watch.Modified && pod.DeletionTimestamp != nil:
			marked = true
		case event.Type == watch.Deleted:
			if since := time.Since(before); !marked || since < 5*time.Millisecond {
				t.Errorf("the pod was gone after %v, marked: %t", since, marked)
			}
			if requests.Load() < 3 || frames.Load() != 3 {
				t.Errorf("the gate saw %d requests and %d frames", requests.Load(), frames.Load())
			}
			return
		}
	}
	t.Error("the watch ended")
}
