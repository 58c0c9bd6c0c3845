package roletest

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flyball-dev/flyball/manager/rbac"
)

func TestDifferences(t *testing.T) {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}
	get, update := rbac.Call{Resource: "pods", Verb: "get"}, rbac.Call{Resource: "pods", Verb: "update"}
	for _, c := range []struct {
		calls      []rbac.Call
		everything bool
		want       []string
	}{
		{[]rbac.Call{get}, false, nil},
		{[]rbac.Call{get}, true, []string{"allows what no test needs: [list] of [pods]"}},
		{[]rbac.Call{get, update}, false, []string{"does not allow: update pods of group \"\""}},
	} {
		if got := differences(rules, c.calls, c.everything); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.calls, got, c.want)
		}
	}
}
