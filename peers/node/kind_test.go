package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKindScript runs what make kind runs. The node takes the place of kind's cluster, and a script that of the program
// kind: what kind itself does is not tested.
func TestKindScript(t *testing.T) {
	n := start(t, Ours, "kubectl")
	bin := t.TempDir()
	must(t, os.WriteFile(filepath.Join(bin, "kind"), fmt.Appendf(nil, `#!/usr/bin/env bash
set -eu -o pipefail
echo "kind $*"
case "$1 $2" in
"create cluster") while [ "$1" != --kubeconfig ]; do shift; done; cp %q "$2" ;;
"load docker-image") docker save "$3" | docker exec -i %s ctr --namespace k8s.io images import - ;;
"delete cluster") ;;
*) exit 1 ;;
esac
`, n.Kubeconfig, n.name), 0o755))
	root, err := repository()
	must(t, err)
	script := exec.CommandContext(t.Context(), filepath.Join(root, "docs", "kind", "story.sh"))
	script.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "IMAGES="+strings.Join(Web[:], ","))
	out, err := script.CombinedOutput()
	t.Logf("\n%s", out)
	must(t, err)
	if text := string(out); !strings.Contains(text, "demo: ok") || !strings.Contains(text, "kind delete cluster") {
		t.Error("the story was not played to the end, or the cluster was not deleted")
	}
}
