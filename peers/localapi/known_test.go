package localapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// known lists all intended differences. The reason of each occurs verbatim in docs/divergence.md.
var known = []knownDifference{
	{
		path: `body\..*spec\.serviceAccount(Name)?`, ours: `"default"`,
		reason: "admission plugin ServiceAccount: a pod gets the name `default` where it has none, as by that plugin",
	},
	{
		request: `(MERGE|STRATEGIC|APPLY|PUT) pods/.*`, path: `body\.(message|details\.causes\.[0-9]+\.message)`,
		ours:   `.*pod updates may not change fields other than.*`,
		reason: "a refused change of a pod shows both pods",
	},
	{
		request: `(MERGE|JSON) .*`, path: `body\.(message|details\.causes\.[0-9]+\.message)`,
		same:   sameButForOrder,
		reason: "an error that quotes a patched object has its fields in the order of their names",
	},
	{
		script: "pods", request: "POST pods/volumes/eviction", path: `code|body(\..*)?|headers.*`,
		reason: "evictions of `policy/v1beta1`",
	},
	{
		request: "(POST|GET|MERGE) persistentvolumeclaims.*", path: `body.*metadata\.finalizers`,
		reason: "the finalizer `kubernetes.io/pvc-protection` of new claims",
	},
	{
		request: `.* resourcequotas.*`, path: `body.*managedFields.*`,
		reason: "kube-controller-manager writes the status of a quota",
	},
	{
		request: "(POST|GET|MERGE) persistentvolumes.*", path: `body.*metadata\.finalizers`,
		reason: "the finalizer `kubernetes.io/pv-protection` of new volumes",
	},
	{
		request: "(POST|GET|MERGE) volumeattributesclasses.*", path: `body.*metadata\.finalizers`,
		reason: "the finalizer `kubernetes.io/vac-protection` of new classes of volume attributes",
	},
	{
		request: ".* apiservices.*", path: `body.*managedFields.*`,
		reason: "the manager of an APIService does not own the spec itself, only its fields",
	},
	{
		request: "GET ipaddresses/.*", path: `body\.rows\.0\.cells\.2`,
		reason: "the rows of a table of IPAddresses have a third cell, for which there is no column",
	},
	{
		request: `POST /apis/authorization.k8s.io/v1/.*`, path: `body\.metadata\.managedFields`,
		reason: "access reviews, token reviews and token requests carry managed fields",
	},
	{
		request: ".* nodes.*", path: `body.*spec\.taints`,
		reason: "the not-ready taint of new nodes",
	},
}

// TestKnownDifferencesAreDocumented finds the reason of every known difference in docs/divergence.md.
func TestKnownDifferencesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "divergence.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range known {
		if !strings.Contains(string(text), k.reason) {
			t.Errorf("docs/divergence.md does not say: %s", k.reason)
		}
	}
}
