package deploytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
)

// stopsWithin is how long a program may take to stop when it has nothing to do.
const stopsWithin = 10 * time.Second

// Program is a program with the manifests that deploy it.
type Program struct {
	// Manifests is the folder of the kustomization.
	Manifests string
	// Run runs the program until ctx ends, as its main function does.
	Run func(ctx context.Context, args []string, stderr io.Writer) error
	// Does is called while the program runs and is ready. Nil means that to be ready is enough.
	Does func(t *testing.T, c *Cluster)
	// Webhooks is the Service of the program's webhooks, NAMESPACE/NAME. The API server calls them at the port of its
	// flag --webhook-port. Empty means that it has none.
	Webhooks string
}

// Works runs the program in this process, on a cluster with its manifests. It must become ready, answer its probes,
// show its metrics to those who may see them and to nobody else, get no forbidden answer, stop in time, and give its
// lease back.
func (p Program) Works(t *testing.T) {
	t.Helper()
	objects := Render(t, p.Manifests)
	args, _ := Command(t, objects)
	services := map[string]string{}
	if p.Webhooks != "" {
		at := freePort(t)
		services[p.Webhooks], args = "127.0.0.1:"+at, append(args, "--webhook-port="+at)
	}
	c, output := newCluster(t, objects, services), &output{}
	free := freePort(t)
	args = append(args, "--port="+free, "--kubeconfig="+c.kubeconfig(t))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1) // one send, by the goroutine below
	go func() { ended <- p.Run(ctx, args, output) }()
	t.Cleanup(stop)
	p.check(t, c, objects, free, output)
	stop()
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(stopsWithin):
		t.Fatalf("it has not stopped within %v:\n%s", stopsWithin, output)
	}
	c.left(t, output)
}

// WorksInContainer does what Works does, in a container of the image that has what the Pod has: the token of the
// service account, a read-only file system, no privileges. Only the network is the host's. Webhooks are not called.
func (p Program) WorksInContainer(t *testing.T, image string) {
	t.Helper()
	objects := Render(t, p.Manifests)
	c, output := newCluster(t, objects, nil), &output{}
	args, env := Command(t, objects)
	host, port, err := net.SplitHostPort(c.address)
	must(t, err)
	free := freePort(t)
	env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"] = host, port
	name := "flyball-test-" + free
	run := append(unprivileged(), "--name", name, "--network", "host", "--memory", "512m",
		"--volume", c.account+":/var/run/secrets/kubernetes.io/serviceaccount:ro")
	for name, value := range env {
		run = append(run, "--env", name+"="+value)
	}
	run = append(append(append(run, image), args...), "--port="+free)
	command, ended := exec.Command("docker", run...), make(chan error, 1) // one send, by the goroutine below
	command.Stdout, command.Stderr = output, output
	must(t, command.Start())
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", name).Run() }) // fails if it has ended
	p.check(t, c, objects, free, output)
	begin := time.Now()
	docker(t, "kill", "--signal", "TERM", name)
	if err := <-ended; err != nil || time.Since(begin) > stopsWithin {
		t.Errorf("stopped after %v: %v\n%s", time.Since(begin), err, output)
	}
	c.left(t, output)
}

// check waits until the program is ready, and looks at what it serves.
func (p Program) check(t *testing.T, c *Cluster, objects []manifest.Object, port string, output fmt.Stringer) {
	t.Helper()
	var d appsv1.Deployment
	find(t, objects, "Deployment", &d)
	container, base := d.Spec.Template.Spec.Containers[0], "https://127.0.0.1:"+port
	await(t, base+container.ReadinessProbe.HTTPGet.Path, adminToken, 200, "leader: this process", output)
	await(t, base+container.LivenessProbe.HTTPGet.Path, "", 200, "ok", output)
	await(t, base+"/metrics", "", 401, "", output)
	await(t, base+"/metrics", adminToken, 200, "leader_election_master_status{", output)
	if p.Does != nil {
		p.Does(t, c)
	}
}

// left checks what a program has left that has stopped.
func (c *Cluster) left(t *testing.T, output fmt.Stringer) {
	t.Helper()
	if all := c.forbidden(); len(all) > 0 {
		t.Errorf("forbidden: %v\n%s", all, output)
	}
	var leases coordinationv1.LeaseList
	must(t, c.Admin.List(t.Context(), &leases, client.InNamespace(c.user.Namespace)))
	if len(leases.Items) != 1 || *leases.Items[0].Spec.HolderIdentity != "" {
		t.Errorf("leases: %+v", leases.Items)
	}
}

// unprivileged is the beginning of a docker command that runs a container as a restricted Pod does.
func unprivileged() []string {
	return []string{
		"run", "--rm", "--read-only", "--user", "65532:65532", "--cap-drop", "ALL", "--security-opt",
		"no-new-privileges",
	}
}

// Contained runs a container of the image, without a network, until it ends. It returns what was printed.
func Contained(t *testing.T, image string, args ...string) (output string, code int) {
	t.Helper()
	run := append(append(unprivileged(), "--network", "none", image), args...)
	text, err := exec.Command("docker", run...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(text), exit.ExitCode()
	}
	must(t, err)
	return string(text), 0
}

// Image builds the image that the Deployment of a kustomization runs, and returns its name. The tag is not that of a
// release. Without docker, the test is skipped. Images of examples are built only if FLYBALL_IMAGES is set, because
// they take a minute.
func Image(t *testing.T, manifests string) string {
	t.Helper()
	var d appsv1.Deployment
	find(t, Render(t, manifests), "Deployment", &d)
	name, _, _ := strings.Cut(d.Spec.Template.Spec.Containers[0].Image, ":")
	if name != "flyball" && os.Getenv("FLYBALL_IMAGES") == "" {
		t.Skip("make test-images builds and runs this image")
	}
	if text, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		t.Skipf("images are not tested: docker version: %v: %s", err, text)
	}
	build := exec.Command("make", "-C", root(t), "image", "ONLY="+name, "TAG=test")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make image: %v\n%s", err, text)
	}
	t.Cleanup(func() { docker(t, "rmi", name+":test") })
	return name + ":test"
}

func docker(t *testing.T, args ...string) {
	t.Helper()
	if text, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
		t.Errorf("docker %q: %v\n%s", args, err, text)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// output is what a program prints. It may be read while the program runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
