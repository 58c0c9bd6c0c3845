package v1alpha1_test

import (
	"encoding/json"
	// flyball:validation
	"strings"
	// flyball:end
	"testing"

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"

	"github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/internal/harness"
)

// gizmoInTest is the Gizmo of the tests, but for its metadata. It has what the API server requires.
const gizmoInTest = `{"spec": {"message": "required"}}`

// createGizmo creates a Gizmo with a message. A kind of another project needs its definition in config/crd/external.
func createGizmo(t *testing.T, c client.Client, message string) (*samplev1alpha1.Gizmo, error) {
	t.Helper()
	obj := &samplev1alpha1.Gizmo{}
	if err := json.Unmarshal([]byte(gizmoInTest), obj); err != nil {
		t.Fatal(err)
	}
	obj.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "first"}
	obj.Annotations = map[string]string{"annotation.flyball.example/message": message}
	return obj, c.Create(t.Context(), obj)
}

// flyball:defaulting

func TestDefaultGizmo(t *testing.T) {
	harness.Webhooks(t, func(t *testing.T, c client.Client) {
		obj, err := createGizmo(t, c, "")
		if got := obj.Annotations["annotation.flyball.example/message"]; err != nil || got != "hello" {
			t.Errorf("without a message it is %q; complete gizmoInTest, or put the definition into "+
				"config/crd/external: %v", got, err)
		}
	})
}

// flyball:end
// flyball:validation

func TestValidateGizmo(t *testing.T) {
	harness.Webhooks(t, func(t *testing.T, c client.Client) {
		_, err := createGizmo(t, c, " hello")
		if err == nil || !strings.Contains(err.Error(), "it has spaces around it") {
			t.Errorf("with spaces around the message: %v", err)
		}
		if _, err := createGizmo(t, c, "hello"); err != nil {
			t.Errorf("complete gizmoInTest, or put the definition into config/crd/external: %v", err)
		}
	})
}

// flyball:end
