package simulated

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client/manifest"
)

// Roles returns the rules of all roles in the files.
func Roles(t *testing.T, files ...string) []rbacv1.PolicyRule {
	t.Helper()
	all, err := manifest.ReadFiles(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for _, obj := range all {
		if kind := obj.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		var role rbacv1.ClusterRole // A Role has the same rules.
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	if len(rules) == 0 {
		t.Fatalf("there is no rule in %q", files)
	}
	return rules
}
