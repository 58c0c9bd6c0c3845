package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// worker is the second node of the cluster.
const worker = "flyball-worker"

// cluster is appended to docs/kind/cluster.yaml, with the image of the nodes. The first patches are for machines
// without cgroup v2, and for containers that cannot protect a process from the kernel's out-of-memory killer.
const cluster = `
- |
  apiVersion: kubelet.config.k8s.io/v1beta1
  kind: KubeletConfiguration
  failCgroupV1: false
  oomScoreAdj: 0
- |
  apiVersion: kubeproxy.config.k8s.io/v1alpha1
  kind: KubeProxyConfiguration
  oomScoreAdj: 0
# Pods may run on every node.
- |
  apiVersion: kubeadm.k8s.io/v1beta4
  kind: InitConfiguration
  nodeRegistration:
    taints: []
# The nodes have a network already.
networking: {disableDefaultCNI: true}
nodes:
- {role: control-plane, image: %[1]q}
- {role: worker, image: %[1]q}
`

// kindCluster is a place for a cluster of kind.
type kindCluster struct {
	// root is the folder of the root module, dir a temporary one. bin has the programs of Kubernetes, and kind.
	root, dir, bin string
	// environment has the variable CLUSTER, the path of the file from which kind is to make the cluster.
	environment []string
}

// newKind builds what kind needs, and describes a cluster of two nodes. Config is the beginning of the description, up
// to kubeadmConfigPatches. If the test makes the cluster, it is deleted at the end.
func newKind(t *testing.T, config string) *kindCluster {
	t.Helper()
	bin, image, err := buildKind(t.Context(), t.Output())
	must(t, err)
	k := &kindCluster{dir: t.TempDir(), bin: bin}
	must(t, wrapDocker(t.Context(), filepath.Join(k.dir, "docker")))
	k.root, err = repository()
	must(t, err)
	description := filepath.Join(k.dir, "cluster.yaml")
	must(t, os.WriteFile(description, []byte(config+fmt.Sprintf(cluster, image)), 0o644))
	if left := ofCluster(t); left != "" {
		t.Fatalf("there is a cluster already, with the containers %s: kind delete cluster --name flyball ends it", left)
	}
	k.environment = append(os.Environ(), "PATH="+k.dir+":"+bin+":"+os.Getenv("PATH"), "TMPDIR="+k.dir,
		"CLUSTER="+description,
		// kind's own choice for an engine on fuse-overlayfs needs a program that the image lacks.
		"KIND_EXPERIMENTAL_CONTAINERD_SNAPSHOTTER=overlayfs")
	deleteAtEnd(t, k.environment)
	return k
}

// shell runs a command in the folder of the root module, and returns what it prints.
func (k *kindCluster) shell(t *testing.T, command string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "bash", "-c", command)
	c.Dir, c.Env, c.SysProcAttr = k.root, k.environment, upstream.ChildAttributes()
	out, err := c.CombinedOutput()
	t.Logf("%s\n%s", command, out)
	must(t, err)
	return string(out)
}

// TestKind runs what make kind runs, with kind itself and an image of a node that is built here, and drains a node of
// the cluster.
func TestKind(t *testing.T) {
	able(t)
	root, err := repository()
	must(t, err)
	config, err := os.ReadFile(filepath.Join(root, "docs", "kind", "cluster.yaml"))
	must(t, err)
	k := newKind(t, string(config))
	k.environment = append(k.environment, "KEEP=1", "IMAGES="+strings.Join(Web[:], ","))
	out := k.shell(t, "exec docs/kind/story.sh")
	for _, want := range []string{
		`(?m)(^flyball-manager-\S+ +1/1 +Running .*\n){2}`,
		`(?m)(^[1-7]  .*\n){7}\ndemo: ok`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the output does not match %s", want)
		}
	}
	kubeconfig := regexp.MustCompile(`export KUBECONFIG=(\S+); kind delete cluster`).FindStringSubmatch(out)
	if kubeconfig == nil {
		t.Fatal("the output does not tell where the kubeconfig is")
	}
	n := ofKind(t, kubeconfig[1])
	w := newWeb(t, n, "web")
	run(t, "names", w.resolved)
	run(t, "node drained", func(t *testing.T) {
		if on := w.nodes(t); !on[worker] {
			t.Fatalf("before, the pods are on the nodes %v", on)
		}
		x := newTraffic(t, w.url)
		k.shell(t, "exec kubectl --kubeconfig "+kubeconfig[1]+" drain "+worker+" --ignore-daemonsets --timeout 3m")
		for _, d := range []string{manager, "coredns"} {
			must(t, n.AwaitDeployment(t.Context(), system, d))
		}
		w.rolledOut(t)
		w.awaitEndpoints(t, replicas)
		x.whole(t, x.end(t))
		if on := w.nodes(t); on[worker] {
			t.Errorf("after, the pods are on the nodes %v", on)
		}
	})
	run(t, "nothing forbidden", func(t *testing.T) { nothingForbidden(t, n) })
}

// ofCluster returns the containers of the cluster.
func ofCluster(t *testing.T) string {
	t.Helper()
	out, err := docker(context.WithoutCancel(t.Context()), "ps", "--all", "--quiet", "--filter",
		"label=io.x-k8s.kind.cluster=flyball")
	must(t, err)
	return out
}

// deleteAtEnd deletes the cluster, and kind's network if there is none before, at the end of the test. If this process
// is killed, that happens too.
func deleteAtEnd(t *testing.T, environment []string) {
	t.Helper()
	// runc freezes a container for a moment while it creates it. With cgroup v1, a node that is killed then never ends,
	// so the kubelet is stopped first.
	command := "read; kind get nodes --name flyball | xargs -rI{} docker exec {} systemctl stop kubelet; " +
		"kind delete cluster --name flyball"
	network, err := docker(t.Context(), "network", "ls", "--quiet", "--filter", "name=^kind$")
	must(t, err)
	if network == "" {
		command += " && docker network rm kind"
	}
	c := exec.Command("bash", "-c", command)
	c.Env, c.SysProcAttr = environment, &syscall.SysProcAttr{Setpgid: true}
	var says bytes.Buffer
	c.Stdout, c.Stderr = &says, &says
	stdin, err := c.StdinPipe() // it is closed when this process ends
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() {
		if err := errors.Join(stdin.Close(), c.Wait()); err != nil {
			t.Errorf("delete the cluster: %v\n%s", err, &says)
		}
		if left := ofCluster(t); left != "" {
			t.Errorf("the containers %s are left", left)
		}
	})
}

// ofKind returns what the tests need of a node of the cluster.
func ofKind(t *testing.T, kubeconfig string) *Node {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	config.WarningHandler = rest.NoWarnings{} // Endpoints are deprecated, and read all the same
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	node, err := client.CoreV1().Nodes().Get(t.Context(), worker, metav1.GetOptions{})
	must(t, err)
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return &Node{IP: a.Address, Config: config, Client: client}
		}
	}
	t.Fatalf("the node %s has no address", worker)
	return nil
}

// nodes returns where the pods run.
func (w *web) nodes(t *testing.T) map[string]bool {
	t.Helper()
	on := map[string]bool{}
	for _, pod := range w.pods(t) {
		on[pod.Spec.NodeName] = true
	}
	return on
}

// resolved asks for the name of the Service in a pod.
func (w *web) resolved(t *testing.T) {
	must(t, w.n.AwaitDeployment(t.Context(), system, "coredns"))
	service, err := w.n.Client.CoreV1().Services("default").Get(t.Context(), w.name, metav1.GetOptions{})
	must(t, err)
	for pod := range w.pods(t) {
		must(t, eventually(t.Context(), "the name of the Service is not resolved", func() error {
			have, err := w.n.Client.CoreV1().RESTClient().Get().Namespace("default").Resource("pods").
				Name(pod+":8080").SubResource("proxy").Suffix("lookup", w.name).DoRaw(t.Context())
			if want := service.Spec.ClusterIP + "\n"; err == nil && string(have) != want {
				err = fmt.Errorf("in %s it is %q, want %q", pod, have, want)
			}
			return err
		}))
	}
}

// wrapDocker writes a script that takes the place of the docker client where the engine refuses the flag privileged: it
// gives the powers that a node needs one by one.
func wrapDocker(ctx context.Context, path string) error {
	if _, err := docker(ctx, "run", "--rm", "--privileged", "--entrypoint", "true", rootImage()); err == nil {
		return nil
	}
	client, err := exec.LookPath("docker")
	if err != nil {
		return err
	}
	return os.WriteFile(path, fmt.Appendf(nil, `#!/usr/bin/env bash
command=$1
for argument; do
  shift
  case $command,$argument in
  run,--privileged) set -- "$@" %s ;;
  exec,--privileged) ;;
  *) set -- "$@" "$argument" ;;
  esac
done
exec %q "$@"
`, "'"+strings.Join(powers, "' '")+"'", client), 0o755)
}
