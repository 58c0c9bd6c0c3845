package kinds

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEncodeWithTheKindOfTheType: what is sent has the kind that the scheme has for the Go type, whatever the object
// says. The object stays as it is, because others may read it.
//
// Source: k8s.io/apimachinery v0.37.2 pkg/runtime/helper.go, WithVersionEncoder.
func TestEncodeWithTheKindOfTheType(t *testing.T) {
	for _, said := range []metav1.TypeMeta{
		{},
		{Kind: "ConfigMap"},
		{APIVersion: "v1"},
		{APIVersion: "v1", Kind: "ConfigMap"},
		{APIVersion: "example.com/v1", Kind: "Other"},
	} {
		obj := &corev1.ConfigMap{TypeMeta: said, Data: map[string]string{"k": "v"}}
		data, media, err := Encode(obj, corev1.SchemeGroupVersion.WithKind("ConfigMap"), false)
		const want = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{},"data":{"k":"v"}}`
		if string(data) != want || media != JSON || err != nil || obj.TypeMeta != said {
			t.Errorf("%+v: %s, %s, %v; the object has %+v", said, data, media, err, obj.TypeMeta)
		}
	}
}
