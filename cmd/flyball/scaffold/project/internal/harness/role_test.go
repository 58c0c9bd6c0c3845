package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/manager/rbac"
)

// TestRole compares what all tests have asked for with what config/rbac/role.yaml allows. make role runs it last.
func TestRole(t *testing.T) {
	path := os.Getenv("PRINT_ROLE")
	if path == "" {
		t.Skip("make role runs this test")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var calls []rbac.Call
	for line := range strings.Lines(string(text)) {
		var more []rbac.Call
		if err := json.Unmarshal([]byte(line), &more); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, more...)
	}
	rules, err := allowed()
	if err != nil {
		t.Fatal(err)
	}
	_, unused := rbac.Compare(rules, calls)
	show(t, "The smallest role for what the tests asked for:", rbac.Rules(calls))
	show(t, "What config/rbac/role.yaml allows in addition:", unused)
}

func show(t *testing.T, title string, rules []rbacv1.PolicyRule) {
	t.Helper()
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s\n\n%s\n", title, text)
}
