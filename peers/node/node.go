package node

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// Node is a running one.
type Node struct {
	// Dir has the files of the programs, and their logs (logs/NAME.log). In the container it is /node.
	Dir string
	// IP is the address of the container, which this machine reaches.
	IP string
	// Kubeconfig is the path of a kubeconfig for an administrator, and Config is what it says.
	Kubeconfig string
	Config     *rest.Config
	// Client is the administrator's.
	Client kubernetes.Interface

	name  string // of the container
	run   *exec.Cmd
	stdin io.Closer // the container ends when it is closed
	log   io.Writer
}

// binaries are those of Kubernetes that the node runs.
var binaries = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}

// Start builds what is missing and starts a node. When it returns, the node is ready and kube-controller-manager runs
// those of its controllers that are in its flag controllers. Progress goes to log. The container ends with
// [Node.Close], and at the latest when this process ends.
func Start(ctx context.Context, log io.Writer, controllers string) (*Node, error) {
	if err := Needs(ctx); err != nil {
		return nil, err
	}
	if err := buildRoot(ctx, log); err != nil {
		return nil, err
	}
	bin, err := upstream.Build(ctx, log, binaries...)
	if err != nil {
		return nil, err
	}
	if err := buildImages(ctx); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "flyball-node-")
	if err != nil {
		return nil, err
	}
	n := &Node{Dir: dir, name: filepath.Base(dir), log: log}
	if err := n.start(ctx, bin, controllers); err != nil {
		return nil, errors.Join(err, n.logs(), n.Close())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, bin, controllers string) error {
	if err := compile(ctx, "cmd/init", n.file("init"), ""); err != nil {
		return err
	}
	if err := n.startContainer(bin); err != nil {
		return err
	}
	fmt.Fprintf(n.log, "the container %s has the address %s\n", n.name, n.IP)
	if err := n.writeFiles(); err != nil {
		return err
	}
	for _, p := range []string{"containerd", "etcd", "kube-apiserver"} {
		if err := n.StartProgram(ctx, p); err != nil {
			return err
		}
	}
	if err := n.connect(ctx); err != nil {
		return err
	}
	if err := n.Load(ctx, append([]string{pause}, Web[:]...)...); err != nil {
		return err
	}
	for _, p := range []string{"kube-scheduler", "kubelet", "kube-proxy"} {
		if err := n.StartProgram(ctx, p); err != nil {
			return err
		}
	}
	if err := n.SetControllers(ctx, controllers); err != nil {
		return err
	}
	return n.AwaitReady(ctx)
}

// powers let a container be a node. They are those of docker's flag privileged but for CAP_SYS_RESOURCE, which engines
// that run in a virtual machine or a container may lack themselves: then docker refuses that flag.
var powers = []string{
	"--cap-add", "ALL", "--cap-drop", "SYS_RESOURCE", "--cgroupns", "private",
	"--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined",
	"--security-opt", "systempaths=unconfined", "--device", "/dev/kmsg", "--device-cgroup-rule", "a *:* rwm",
}

// startContainer runs process 1, which says its address.
func (n *Node) startContainer(bin string) error {
	if err := os.Mkdir(n.file("logs"), 0o755); err != nil {
		return err
	}
	n.run = exec.Command("docker", append(append([]string{"run", "--rm", "--interactive", "--name", n.name}, powers...),
		"--hostname", name, "--tmpfs", "/run", "--tmpfs", "/tmp",
		// The file system of the container is an overlay, on which containerd could not put others.
		"--volume", "/var/lib/containerd", "--volume", "/var/lib/kubelet", "--volume", "/var/lib/etcd",
		"--volume", n.Dir+":/node", "--volume", bin+":/kubernetes:ro",
		"--entrypoint", "/node/init", rootImage(), "/node/logs")...)
	n.run.SysProcAttr = upstream.ChildAttributes()
	var says bytes.Buffer
	n.run.Stderr = &says
	stdin, err := n.run.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := n.run.StdoutPipe()
	if err != nil {
		return err
	}
	if err := n.run.Start(); err != nil {
		n.run = nil
		return err
	}
	n.stdin = stdin
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the container does not start: %w\n%s", errors.Join(err, n.end()), says.Bytes())
	}
	n.IP = line[:len(line)-1]
	return nil
}

// StartProgram starts a program, or starts it anew.
func (n *Node) StartProgram(ctx context.Context, program string, args ...string) error {
	command, err := n.command(program)
	if err != nil {
		return err
	}
	body, err := json.Marshal(append(command, args...))
	if err != nil {
		return err
	}
	return n.tell(ctx, http.MethodPut, program, body)
}

// StopProgram ends a program and returns when it has ended.
func (n *Node) StopProgram(ctx context.Context, program string) error {
	return n.tell(ctx, http.MethodDelete, program, nil)
}

// tell tells process 1 something.
func (n *Node) tell(ctx context.Context, method, program string, body []byte) error {
	url := fmt.Sprintf("http://%s:10000/%s", n.IP, program)
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s %s: %s: %s", method, program, response.Status, text)
	}
	return nil
}

// Exec runs a command in the container and returns its output.
func (n *Node) Exec(ctx context.Context, command ...string) (string, error) {
	return docker(ctx, append([]string{"exec", n.name}, command...)...)
}

// Load gives images of the engine to containerd.
func (n *Node) Load(ctx context.Context, images ...string) error {
	save := exec.CommandContext(ctx, "docker", append([]string{"save"}, images...)...)
	load := exec.CommandContext(ctx, "docker", "exec", "--interactive", n.name,
		"ctr", "--namespace", "k8s.io", "images", "import", "-")
	var err error
	if load.Stdin, err = save.StdoutPipe(); err != nil {
		return err
	}
	if err := save.Start(); err != nil {
		return err
	}
	_, err = output(load)
	return errors.Join(err, save.Wait())
}

// connect waits until the API server is ready, and makes the kubeconfigs of everybody.
func (n *Node) connect(ctx context.Context) error {
	for _, user := range users {
		if err := n.writeKubeconfig(ctx, user.name); err != nil {
			return err
		}
	}
	n.Kubeconfig = n.file("admin.kubeconfig")
	var err error
	if n.Config, err = clientcmd.BuildConfigFromFlags("", n.Kubeconfig); err != nil {
		return err
	}
	n.Config.WarningHandler = rest.NoWarnings{} // Endpoints are deprecated, and read all the same
	if n.Client, err = kubernetes.NewForConfig(n.Config); err != nil {
		return err
	}
	return n.AwaitAPI(ctx)
}

// AwaitAPI waits until the API server is ready.
func (n *Node) AwaitAPI(ctx context.Context) error {
	return eventually(ctx, "the API server is not ready", func() error {
		return n.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// AwaitReady waits until the kubelet says that the node is ready.
func (n *Node) AwaitReady(ctx context.Context) error {
	return eventually(ctx, "the node is not ready", func() error {
		node, err := n.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
			if c.Type == corev1.NodeReady {
				err = errors.New(c.Message)
			}
		}
		return errors.Join(errors.New("not ready"), err)
	})
}

// patience is how long a part of the node may take to become ready.
const patience = 3 * time.Minute

// eventually calls f until it returns nil.
func eventually(ctx context.Context, what string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Close ends the container and removes its files.
func (n *Node) Close() error {
	return errors.Join(n.end(), os.RemoveAll(n.Dir))
}

// end ends the container, with all processes and volumes.
func (n *Node) end() error {
	if n.run == nil || n.stdin == nil {
		return nil
	}
	err := n.stdin.Close()
	n.stdin = nil
	_ = n.run.Wait() // it was told to end; its exit code tells nothing more
	return err
}

func (n *Node) file(name string) string { return filepath.Join(n.Dir, name) }

// logs returns the ends of the logs as an error.
func (n *Node) logs() error {
	var all []error
	files, err := filepath.Glob(n.file("logs/*.log"))
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		const most = 1500
		all = append(all, fmt.Errorf("the end of %s:\n%s", filepath.Base(f), text[max(0, len(text)-most):]))
	}
	return errors.Join(all...)
}
