// Package e2e tests the operator as a whole, with its manifests: its image in a cluster of kind or, where there is no
// kind, bin/manager and flyball serve.
package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	name  = "sample-operator"
	image = name + ":e2e"
)

// TestSamples creates the objects of config/samples, waits until they are ready, and deletes them. The condition Ready
// is that of the controllers: a kind without one needs another test.
func TestSamples(t *testing.T) {
	if os.Getenv("E2E") == "" {
		t.Skip("make test-e2e runs this test")
	}
	t.Chdir("../..") // the root of the project
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "kubeconfig"))
	if _, err := exec.LookPath("kind"); err == nil && os.Getenv("E2E") != "serve" {
		inKind(t)
	} else {
		onServe(t)
	}
	eventually(t, "kubectl apply -k config/samples") // refused until the manager serves its webhooks
	run(t, "kubectl kustomize config/samples | kubectl wait --for=condition=Ready --timeout=2m -f -")
	run(t, "kubectl delete -k config/samples --timeout=1m") // the finalizers are gone, too
}

// inKind deploys the image to a new cluster of kind.
func inKind(t *testing.T) {
	t.Helper()
	cluster := name + "-e2e"
	t.Cleanup(func() { run(t, "kind delete cluster --name "+cluster) })
	run(t, "kind create cluster --wait 2m --name "+cluster)
	run(t, "make image IMG="+image)
	run(t, "kind load docker-image "+image+" --name "+cluster)
	run(t, "make deploy IMG="+image)
	run(t, fmt.Sprintf("kubectl rollout status --timeout=2m -n %s-system deployment/%[1]s-controller-manager", name))
}

// onServe runs the API server and the manager on this machine.
func onServe(t *testing.T) {
	t.Helper()
	host, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	start(t, "flyball", "serve", "--kubeconfig", os.Getenv("KUBECONFIG"),
		"--webhook-service", fmt.Sprintf("%s-system/%[1]s-webhook-service=%s:%s", name, host, port))
	eventually(t, "kubectl get namespaces")
	run(t, "make deploy")
	start(t, "bin/manager", "--port=0", "--webhook-port="+port)
}

// freeAddress returns an address of loopback that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// start starts a program that runs until the end of the test.
func start(t *testing.T, program string, args ...string) {
	t.Helper()
	log := &strings.Builder{}
	c := exec.Command(program, args...)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil || t.Failed() {
			t.Errorf("%s: %v\n%s", program, err, log)
		}
	})
}

// run runs a command of the shell.
func run(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// eventually runs a command until it succeeds.
func eventually(t *testing.T, command string) {
	t.Helper()
	var out []byte
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if out, err = exec.Command("sh", "-c", command).CombinedOutput(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v\n%s", command, err, out)
}
