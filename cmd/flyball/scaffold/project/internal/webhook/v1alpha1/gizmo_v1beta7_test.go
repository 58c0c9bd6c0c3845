package v1alpha1_test

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
	samplev1beta7 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1beta7"
	"github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/internal/harness"
)

// TestConvertGizmoV1beta7: a Gizmo that is written in version v1beta7 can be read in version v1alpha1, and comes back
// as it was written. Set all fields of it here.
func TestConvertGizmoV1beta7(t *testing.T) {
	harness.Webhooks(t, func(t *testing.T, c client.Client) {
		ctx := t.Context()
		written := &samplev1beta7.Gizmo{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"},
			Spec:       samplev1beta7.GizmoSpec{Message: "hello"},
		}
		if err := c.Create(ctx, written.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		var hub samplev1alpha1.Gizmo
		var read, back samplev1beta7.Gizmo
		key := client.ObjectKeyFromObject(written)
		if err := c.Get(ctx, key, &hub); err != nil {
			t.Fatal(err)
		}
		if err := back.ConvertFrom(&hub); err != nil || !reflect.DeepEqual(back.Spec, written.Spec) {
			t.Errorf("from version v1alpha1: %v, %+v, want %+v", err, back.Spec, written.Spec)
		}
		if err := c.Get(ctx, key, &read); err != nil || !reflect.DeepEqual(read.Spec, written.Spec) {
			t.Errorf("in version v1beta7: %v, %+v, want %+v", err, read.Spec, written.Spec)
		}
	})
}
