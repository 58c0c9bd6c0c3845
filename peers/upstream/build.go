package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Version is the Kubernetes version that is built. It is the one go.mod requires of k8s.io/kubernetes.
const Version = "v1.37.2"

// programs are what can be built: the package of each binary. A name that ends in .test is the program of the
// package's tests.
var programs = map[string]string{
	"agnhost":                 "k8s.io/kubernetes/test/images/agnhost",
	"e2e.test":                "k8s.io/kubernetes/test/e2e",
	"etcd":                    "go.etcd.io/etcd/server/v3",
	"ginkgo":                  "github.com/onsi/ginkgo/v2/ginkgo",
	"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
	"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
	"kube-proxy":              "k8s.io/kubernetes/cmd/kube-proxy",
	"kube-scheduler":          "k8s.io/kubernetes/cmd/kube-scheduler",
	"kubeadm":                 "k8s.io/kubernetes/cmd/kubeadm",
	"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
	"kubelet":                 "k8s.io/kubernetes/cmd/kubelet",
	"kind":                    "sigs.k8s.io/kind",
}

// controlPlane are the binaries that [Start] runs.
var controlPlane = []string{"etcd", "kube-apiserver", "kube-controller-manager"}

// Build returns the folder that holds the binaries, and builds those of names that are missing. No names mean those
// that [Start] needs. Progress goes to log.
//
// Concurrency: two processes may build at once; each binary appears whole or not at all.
func Build(ctx context.Context, log io.Writer, names ...string) (string, error) {
	if len(names) == 0 {
		names = controlPlane
	}
	module, err := moduleDir()
	if err != nil {
		return "", err
	}
	dir, err := cacheDir(module)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		path, ok := programs[name]
		if !ok {
			return "", fmt.Errorf("build %s: there is no such program", name)
		}
		target := filepath.Join(dir, name)
		if _, err := os.Stat(target); err == nil {
			continue
		}
		fmt.Fprintf(log, "building %s %s (only the first time; minutes)\n", name, Version)
		start := time.Now()
		if err := compile(ctx, module, path, target); err != nil {
			return "", fmt.Errorf("build %s: %w", name, err)
		}
		fmt.Fprintf(log, "built %s in %s\n", name, time.Since(start).Round(time.Second))
	}
	return dir, nil
}

func compile(ctx context.Context, module, path, target string) error {
	half := fmt.Sprintf("%s.%d", target, os.Getpid())
	defer os.Remove(half)
	// kubectl refuses servers whose version is not one.
	flags := "-s -w -X k8s.io/component-base/version.gitVersion=" + Version
	args := []string{"build"}
	if strings.HasSuffix(target, ".test") {
		args = []string{"test", "-c", "-vet=off"}
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "-trimpath", "-ldflags", flags, "-o", half, path)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return os.Rename(half, target)
}

// moduleDir is the folder of the module that this file belongs to.
func moduleDir() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", fmt.Errorf("find the peers module: the source path is not known")
	}
	dir := filepath.Dir(filepath.Dir(file))
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", fmt.Errorf("find the peers module: %w (was the program built with -trimpath?)", err)
	}
	return dir, nil
}

// cacheDir names a folder for what these requirements and this toolchain build.
func cacheDir(module string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), Version)
	for _, name := range []string{"go.mod"} {
		text, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		hash.Write(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the binaries: %w (set XDG_CACHE_HOME)", err)
	}
	dir := filepath.Join(cache, "flyball", "controlplane", Version+"-"+hex.EncodeToString(hash.Sum(nil))[:12])
	return dir, os.MkdirAll(dir, 0o755)
}
