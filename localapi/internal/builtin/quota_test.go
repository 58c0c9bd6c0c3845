package builtin

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
)

// objects are configuration maps and one quota.
type objects struct {
	maps  []runtime.Object
	quota *corev1.ResourceQuota
}

func (o *objects) List(context.Context, schema.GroupVersionResource, string) ([]runtime.Object, error) {
	return o.maps, nil
}

func (o *objects) UpdateStatus(_ context.Context, _ schema.GroupVersionResource, _, _ string,
	change func(runtime.Object) error,
) error {
	return change(o.quota)
}

// TestQuotaOfShortLives: an object that is deleted before the request that created it is over is not counted for ever.
func TestQuotaOfShortLives(t *testing.T) {
	stored := &objects{quota: &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "a", UID: "q"}}}
	stored.quota.Spec.Hard = corev1.ResourceList{corev1.ResourceConfigMaps: units(2)}
	q := &Quota{
		Others: stored,
		Quotas: func(string) ([]*corev1.ResourceQuota, error) { return []*corev1.ResourceQuota{stored.quota}, nil },
		Served: func(gr schema.GroupResource) (schema.GroupVersionResource, bool) { return gr.WithVersion("v1"), true },
	}
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	request := func(operation admissionv1.Operation, obj runtime.Object) *admission.Review {
		t.Helper()
		r := &admission.Review{}
		r.Request = admission.Attributes{
			Review: r, Operation: operation, Namespace: "a", Object: obj,
			Resource: corev1.SchemeGroupVersion.WithResource("configmaps"),
		}
		if err := q.Validate(t.Context(), &r.Request); err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := func(used int64, when string) {
		t.Helper()
		if got := stored.quota.Status.Used[corev1.ResourceConfigMaps]; got.Value() != used {
			t.Errorf("%s: %d are used, want %d", when, got.Value(), used)
		}
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", UID: "m"}}
	create := request(admissionv1.Create, object)
	want(1, "charged")
	stored.maps = []runtime.Object{object}
	remove := request(admissionv1.Delete, nil)
	stored.maps = nil
	q.Settle(t.Context(), remove, true)
	want(1, "deleted, and perhaps not yet stored")
	q.Settle(t.Context(), create, true)
	want(0, "both are over")
}
