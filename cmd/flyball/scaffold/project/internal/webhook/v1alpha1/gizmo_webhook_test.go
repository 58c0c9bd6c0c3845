package v1alpha1_test

import (
	// flyball:validation
	"strings"
	// flyball:end
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
	"github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/internal/harness"
)

func newGizmo(message string) *samplev1alpha1.Gizmo {
	return &samplev1alpha1.Gizmo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"},
		Spec:       samplev1alpha1.GizmoSpec{Message: message},
	}
}

// flyball:defaulting

func TestDefaultGizmo(t *testing.T) {
	harness.Webhooks(t, func(t *testing.T, c client.Client) {
		ctx := t.Context()
		obj := newGizmo("")
		if err := c.Create(ctx, obj); err != nil || obj.Spec.Message != "hello" {
			t.Errorf("without a message: %v, and it is %q", err, obj.Spec.Message)
		}
	})
}

// flyball:end
// flyball:validation

func TestValidateGizmo(t *testing.T) {
	harness.Webhooks(t, func(t *testing.T, c client.Client) {
		ctx := t.Context()
		obj := newGizmo("hello")
		if err := c.Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
		obj.Spec.Message = " hello"
		if err := c.Update(ctx, obj); err == nil || !strings.Contains(err.Error(), "it has spaces around it") {
			t.Errorf("updated with spaces around the message: %v", err)
		}
		if err := c.Delete(ctx, obj); err != nil {
			t.Fatal(err)
		}
		obj = newGizmo("hello ")
		if err := c.Create(ctx, obj); err == nil || !strings.Contains(err.Error(), "it has spaces around it") {
			t.Errorf("created with spaces around the message: %v", err)
		}
	})
}

// flyball:end
