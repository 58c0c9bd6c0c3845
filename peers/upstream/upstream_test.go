package upstream

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestStart starts the real control plane, asks for its version, and checks that Stop leaves nothing behind.
func TestStart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute) // the first build
	defer cancel()
	cp, err := Start(ctx, Options{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	pids := make([]int, 0, len(cp.processes))
	for _, p := range cp.processes {
		pids = append(pids, p.cmd.Process.Pid)
	}
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != Version {
		t.Errorf("the server says it is %s, want %s", version.GitVersion, Version)
	}
	if _, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if err := cp.Stop(); err != nil {
		t.Error(err)
	}
	if len(pids) != 2 {
		t.Errorf("%d processes were started, want etcd and kube-apiserver", len(pids))
	}
	if _, err := os.Stat(cp.Dir); !os.IsNotExist(err) {
		t.Errorf("the files are still there: %v", err)
	}
}

// TestVersionIsTheOneRequired holds the constant to go.mod.
func TestVersionIsTheOneRequired(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(out)); got != Version {
		t.Errorf("go.mod requires k8s.io/kubernetes %s, Version is %s", got, Version)
	}
}
