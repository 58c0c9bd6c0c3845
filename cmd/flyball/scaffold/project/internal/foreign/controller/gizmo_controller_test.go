package controller

import (
	"encoding/json"
	"testing"
	"time"

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"

	"github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/internal/harness"
)

func setupGizmo(mgr ctrl.Manager) error {
	return (&GizmoReconciler{
		Client:   mgr.GetClient(),
		Recorder: mgr.GetEventRecorderFor("gizmo-controller"),
	}).SetupWithManager(mgr)
}

// gizmoInTest is the Gizmo of the test, but for its metadata. It has what the API server requires.
const gizmoInTest = `{"spec": {"message": "required"}}`

// createGizmo creates a Gizmo. The definition of a kind of another project must be in config/crd/external.
func createGizmo(t *testing.T, c client.Client, meta metav1.ObjectMeta) {
	t.Helper()
	obj := &samplev1alpha1.Gizmo{}
	err := json.Unmarshal([]byte(gizmoInTest), obj)
	if err == nil {
		obj.ObjectMeta = meta
		err = c.Create(t.Context(), obj)
	}
	if err != nil {
		t.Fatalf("complete gizmoInTest, or put the definition into config/crd/external: %v", err)
	}
	time.Sleep(time.Minute)
}

// TestGizmo: the annotation of a Gizmo becomes a ConfigMap.
func TestGizmo(t *testing.T) {
	harness.Run(t, setupGizmo, func(t *testing.T, c client.Client) {
		message := map[string]string{gizmoMessage: "hello"}
		createGizmo(t, c, metav1.ObjectMeta{Namespace: "default", Name: "first", Annotations: message})
		createGizmo(t, c, metav1.ObjectMeta{Namespace: "default", Name: "second"})
		configMap := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: "default", Name: "first-gizmo"}
		if err := c.Get(t.Context(), key, configMap); err != nil || configMap.Data["message"] != "hello" {
			t.Errorf("the ConfigMap has %q: %v", configMap.Data, err)
		}
		key.Name = "second-gizmo"
		if err := c.Get(t.Context(), key, configMap); !apierrors.IsNotFound(err) {
			t.Errorf("without the annotation: %v, want NotFound", err)
		}
	})
}
