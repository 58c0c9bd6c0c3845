package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flyball-dev/flyball/cmd/flyball/serve"
	"github.com/flyball-dev/flyball/localapi"
)

// TestRBACPrintsRoles runs the command against an API on a port, for as long as it takes to be elected.
func TestRBACPrintsRoles(t *testing.T) {
	defer goleak.VerifyNone(t)
	server, err := localapi.New(localapi.Options{})
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
	if err := serve.WriteKubeconfig(kubeconfig, "http://"+listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	code, out, errs := flyball(t.Context(), "rbac", "--kubeconfig", kubeconfig, "--controllers=replicaset", "--for=2s", "--service-account=operator")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for _, part := range []string{
		"kind: ClusterRole\n", "  - pods\n  verbs:\n  - list\n  - watch\n", "kind: ClusterRoleBinding\n", "kind: RoleBinding\n",
		"  resourceNames:\n  - flyball-manager\n  resources:\n  - leases\n  verbs:\n  - get\n  - update\n", "  name: operator\n  namespace: kube-system\n",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	stop()
	<-served
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}
