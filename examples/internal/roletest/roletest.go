package roletest

import (
	"flag"
	"fmt"
	"io"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/manager/rbac"
)

// Main runs the tests of a package, for its TestMain. If they pass, it compares the ClusterRole in a file with the
// recorded requests, and reports on out what differs. It returns the exit code.
func Main(m *testing.M, path string, requests *rbac.Recorder, out io.Writer) (code int) {
	if code := m.Run(); code != 0 {
		return code
	}
	objects, err := manifest.ReadFiles([]string{path}, nil)
	var role rbacv1.ClusterRole
	if err == nil {
		err = manifest.Find(objects, "ClusterRole", &role)
	}
	if err != nil {
		fmt.Fprintln(out, "FAIL:", err)
		return 1
	}
	everything := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == ""
	wrong := differences(role.Rules, requests.Calls(), everything)
	for _, text := range wrong {
		fmt.Fprintf(out, "FAIL: %s %s\n", path, text)
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
