package suites

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
)

// The servers.
const (
	local     = "localapi"
	apiserver = "kube-apiserver"
)

// start returns the environment in which a suite's envtest finds its server, and a function that ends it.
// kube-apiserver is started by envtest itself, from our binaries; localapi is a cluster that exists, new for each
// run, with RBAC as envtest's has it.
func start(t *testing.T, server string) (env []string, stop func()) {
	t.Helper()
	if server == apiserver {
		build := exec.CommandContext(t.Context(), "go", "run", "./upstream/cmd/controlplane", "-build")
		build.Dir, build.Stderr = "..", os.Stderr
		out, err := build.Output()
		if err != nil {
			t.Fatalf("build kube-apiserver: %v", err)
		}
		assets, stop := wrap(t, strings.TrimSpace(string(out)))
		return []string{
			"USE_EXISTING_CLUSTER=false", "KUBEBUILDER_ASSETS=" + assets,
			"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m",
		}, stop
	}
	const token = "suites"
	api, err := localapi.New(localapi.Options{Tokens: map[string]auth.User{token: auth.Admin()}, RBAC: true})
	if err != nil {
		t.Fatal(err)
	}
	certified := httptest.NewTLSServer(nil) // for its certificate
	certified.Close()
	listener, err := localapi.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: local,
		Clusters: map[string]*clientcmdapi.Cluster{local: {
			Server: "https://" + listener.Addr().String(),
			CertificateAuthorityData: pem.EncodeToMemory(
				&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw},
			),
		}},
		Contexts:  map[string]*clientcmdapi.Context{local: {Cluster: local, AuthInfo: local}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{local: {Token: token}},
	}, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1) // one send, by the goroutine below
	go func() { served <- api.ServeTLS(ctx, listener, &tls.Config{Certificates: certified.TLS.Certificates}) }()
	return []string{"USE_EXISTING_CLUSTER=true", "KUBECONFIG=" + kubeconfig}, func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := api.Close(); err != nil {
			t.Error(err)
		}
	}
}

// wrap returns a folder of scripts that run the programs of bin, and a function that ends those that still run: a
// suite that dies leaves its servers behind, and one of theirs does so when it passes.
func wrap(t *testing.T, bin string) (folder string, stop func()) {
	t.Helper()
	folder = t.TempDir()
	started := filepath.Join(folder, "started")
	for _, program := range []string{"etcd", "kube-apiserver"} {
		script := fmt.Sprintf("#!/bin/sh\necho $$ >>%s\nexec %s \"$@\"\n", started, filepath.Join(bin, program))
		if err := os.WriteFile(filepath.Join(folder, program), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return folder, func() {
		text, err := os.ReadFile(started)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			// One that ended may have left its number to something else.
			if command, err := exec.Command("ps", "-o", "command=", "-p", field).Output(); err == nil &&
				strings.HasPrefix(string(command), bin) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}
