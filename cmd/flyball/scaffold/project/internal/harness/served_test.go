package harness

import (
	"strings"
	"testing"
)

// TestServed: a path of the manifests that no webhook serves is named.
func TestServed(t *testing.T) {
	all := objects(t, "config/crd/bases", "config/crd/patches", "config/webhook/manifests.yaml")
	served := []string{
		"/convert", "/mutate-sample-flyball-example-v1alpha1-gizmo", "/validate-sample-flyball-example-v1alpha1-gizmo",
	}
	if err := checkServed(all, served); err != nil {
		t.Error(err)
	}
	for i, path := range served {
		others := append(append([]string{}, served[:i]...), served[i+1:]...)
		if err := checkServed(all, others); err == nil || !strings.Contains(err.Error(), "has the path "+path+", and") {
			t.Errorf("without %s: %v", path, err)
		}
	}
}
