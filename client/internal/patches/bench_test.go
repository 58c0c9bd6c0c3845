package patches

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkMergePatch makes a patch that changes one field of a ConfigMap.
func BenchmarkMergePatch(b *testing.B) {
	base := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "greeting", UID: "1", ResourceVersion: "7", CreationTimestamp: metav1.Now(),
			Labels:      map[string]string{"app": "web", "tier": "frontend"},
			Annotations: map[string]string{"owner": "team"},
		},
		Data: map[string]string{"color": "blue", "size": "5", "text": "a few words of content"},
	}
	changed := base.DeepCopy()
	changed.Data["color"] = "green"
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Between(base, changed); err != nil {
			b.Fatal(err)
		}
	}
}
