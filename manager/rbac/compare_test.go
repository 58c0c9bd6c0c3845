package rbac_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flyball-dev/flyball/manager/rbac"
)

func ExampleCompare() {
	role := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "delete"}},
	}
	calls := []rbac.Call{
		{Resource: "configmaps", Verb: "create", Namespace: "a"},
		{Group: "apps", Resource: "deployments", Subresource: "status", Verb: "patch", Namespace: "a"},
	}
	missing, unused := rbac.Compare(role, calls)
	fmt.Println(missing)
	fmt.Println(unused[0].Resources, unused[0].Verbs)
	// Output:
	// [patch deployments/status of group apps]
	// [configmaps] [delete]
}

func TestCompare(t *testing.T) {
	rule := func(group, resource, verb string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
	}
	named := rule("", "pods", "get")
	named.ResourceNames = []string{"p"}
	get := rbac.Call{Resource: "pods", Verb: "get", Namespace: "a"}
	log := rbac.Call{Resource: "pods", Subresource: "log", Verb: "get", Namespace: "a"}
	for _, c := range []struct {
		rule            rbacv1.PolicyRule
		call            rbac.Call
		allowed, unused bool
	}{
		{rule("", "pods", "get"), get, true, false},
		{rule("", "pods", "list"), get, false, true},
		{rule("apps", "pods", "get"), get, false, true},
		{rule("*", "*", "*"), get, true, false},
		{rule("*", "*", "*"), log, true, false},
		{rule("", "pods", "get"), log, false, true},
		{rule("", "pods/log", "get"), log, true, false},
		{rule("", "*/log", "get"), log, true, false},
		{rule("", "*/log", "get"), get, false, true},
		{named, get, false, false},
		{rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}, get, false, false},
	} {
		missing, unused := rbac.Compare([]rbacv1.PolicyRule{c.rule}, []rbac.Call{c.call, c.call})
		if want := map[bool]int{false: 1}[c.allowed]; len(missing) != want {
			t.Errorf("%v of %v: missing %v", c.rule, c.call, missing)
		}
		if (len(unused) > 0) != c.unused {
			t.Errorf("%v of %v: unused %v", c.rule, c.call, unused)
		}
	}
	for call, want := range map[rbac.Call]string{
		get: `get pods of group "" in namespace a`, log: `get pods/log of group "" in namespace a`,
	} {
		if got := call.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
