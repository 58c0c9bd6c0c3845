package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
)

// TestRBACPrintsRoles runs the command against an API on a port, until it has been elected and watches, and once more
// for a moment.
func TestRBACPrintsRoles(t *testing.T) {
	defer goleak.VerifyNone(t)
	server, err := localapi.New(localapi.Options{Audit: &audit.Log{}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := localapi.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { served <- server.Serve(ctx, listener) }()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := strings.ReplaceAll(deadKubeconfig, "127.0.0.1:1", listener.Addr().String())
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	running, enough := context.WithCancel(t.Context())
	go func() {
		defer enough()
		for running.Err() == nil && (!sent(server, "watch pods") || !sent(server, "update leases")) {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	code, out, errs := flyball(running, "rbac", "--kubeconfig", kubeconfig, "--controllers=replicaset", "--for=10m",
		"--service-account=operator")
	enough()
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for _, part := range []string{
		"kind: ClusterRole\n", "  - pods\n  verbs:\n  - list\n  - watch\n", "kind: ClusterRoleBinding\n",
		"kind: RoleBinding\n",
		"  resourceNames:\n  - flyball-manager\n  resources:\n  - leases\n  verbs:\n  - get\n  - update\n",
		"  name: operator\n  namespace: kube-system\n",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	if code, out, errs := flyball(t.Context(), "rbac", "--kubeconfig", kubeconfig, "--controllers=replicaset",
		"--for=10ms"); code != 0 || !strings.Contains(out, "kind: ClusterRole\n") {
		t.Errorf("for a moment: exit code %d: %s\n%s", code, errs, out)
	}
	stop()
	<-served
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

// sent is whether there was such a request.
func sent(server *localapi.Server, request string) bool {
	return len(server.Audit().Entries(func(e audit.Entry) bool { return e.Verb+" "+e.Resource == request })) > 0
}
