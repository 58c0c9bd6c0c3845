package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/manager/rbac"
)

// requests records what the controller asks the server for.
var requests = rbac.NewRecorder()

// TestMain runs the tests. If they pass, it compares the ClusterRole in role.yaml, which controller-gen writes from
// markers, with the recorded requests.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		code = compareRole("role.yaml")
	}
	os.Exit(code)
}

// compareRole prints what differs between the ClusterRole in a file and the requests. It returns the exit code.
func compareRole(path string) (code int) {
	objects, err := manifest.ReadFiles([]string{path}, nil)
	var role rbacv1.ClusterRole
	if err == nil {
		err = manifest.Find(objects, "ClusterRole", &role)
	}
	if err != nil {
		fmt.Println("FAIL:", err)
		return 1
	}
	everything := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == ""
	wrong := differences(role.Rules, requests.Calls(), everything)
	for _, text := range wrong {
		fmt.Printf("FAIL: %s %s\n", path, text)
	}
	return min(len(wrong), 1)
}

// differences returns what rules lack for the calls and, if the calls are those of all tests, what no call needs.
func differences(rules []rbacv1.PolicyRule, calls []rbac.Call, everything bool) (wrong []string) {
	missing, unused := rbac.Compare(rules, calls)
	for _, call := range missing {
		wrong = append(wrong, fmt.Sprintf("does not allow: %s", call))
	}
	if !everything {
		return wrong
	}
	for _, rule := range unused {
		wrong = append(wrong, fmt.Sprintf("allows what no test needs: %s of %s", rule.Verbs, rule.Resources))
	}
	return wrong
}

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
