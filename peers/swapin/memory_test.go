package swapin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// The parts that the operator may be made of.
var parts = []struct {
	name  string
	flags []string
}{
	{"controller-runtime", nil},
	{"Flyball's queue, cache and client", []string{"--flyball"}},
	{"the same with NewLeanCache", []string{"--flyball", "--lean"}},
}

// TestMemoryOfTheOperator prints the memory of the operator in interop/controllerruntime/example for FLYBALL_SWAPIN
// Deployments, as many Services and a tenth of Secrets. It measures with the parts of both, on the embedded API and on
// the real kube-apiserver: after all cards are made, and after a restart with nothing to do.
func TestMemoryOfTheOperator(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("FLYBALL_SWAPIN"))
	if err != nil {
		t.Skip("FLYBALL_SWAPIN does not say how many")
	}
	operator := filepath.Join(t.TempDir(), "operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", operator, "./example")
	build.Dir = "../../interop/controllerruntime"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, out)
	}
	servers := []struct {
		name  string
		start func(t *testing.T) string
	}{{"localapi", embedded}, {"kube-apiserver", realServer}}
	var table strings.Builder
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			kubeconfig := s.start(t)
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			config.QPS, config.ContentType = -1, runtime.ContentTypeProtobuf
			config.WarningHandler = rest.NoWarnings{} // Two containers of each Deployment have one port.
			c := kubernetes.NewForConfigOrDie(config)
			fill(t, c, n)
			for _, p := range parts {
				if err := c.CoreV1().ConfigMaps("default").DeleteCollection(t.Context(), metav1.DeleteOptions{},
					metav1.ListOptions{}); err != nil {
					t.Fatal(err)
				}
				made := operate(t, c, n, operator, kubeconfig, p.flags)
				again := operate(t, c, n, operator, kubeconfig, p.flags)
				fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", s.name, p.name, made, again)
			}
		})
	}
	fmt.Printf(
		"| %d Deployments | parts | all cards made: heap | peak resident | processor time | started again: heap | "+
			"peak "+
			"resident | processor time |\n%s", n, table.String(),
	)
}

// footprint is what a process needed.
type footprint struct {
	heap, resident int // MB: the heap after a collection, the most that was resident
	cpu            time.Duration
}

func (f footprint) String() string {
	return fmt.Sprintf("%d MB | %d MB | %.1f s", f.heap, f.resident, f.cpu.Seconds())
}

// operate runs the operator until all cards are there and it rests.
func operate(t *testing.T, c kubernetes.Interface, n int, operator, kubeconfig string, flags []string) footprint {
	t.Helper()
	addr := freeAddr(t)
	cmd := exec.Command(operator, append([]string{"--metrics=0", "--pprof=" + addr}, flags...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if all, err := c.CoreV1().ConfigMaps("default").List(t.Context(),
			metav1.ListOptions{ResourceVersion: "0"}); err == nil && len(all.Items) >= n {
			break
		}
		if cmd.ProcessState != nil || t.Context().Err() != nil {
			t.Fatalf("the operator:\n%s", log.String())
		}
		time.Sleep(100 * time.Millisecond)
	}
	var f footprint
	for rests := 0; rests < 3; time.Sleep(2 * time.Second) { // It rests when it uses nothing, having used something.
		used := f.cpu
		if f.cpu = processorTime(t, cmd.Process.Pid); f.cpu > 0 && f.cpu == used {
			rests++
		} else {
			rests = 0
		}
	}
	f.resident = number(t, fmt.Sprintf("/proc/%d/status", cmd.Process.Pid), `VmHWM:\s+(\d+) kB`) / 1000
	response, err := http.Get("http://" + addr + "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		t.Fatal(err)
	}
	profile, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	found := regexp.MustCompile(`# HeapAlloc = (\d+)`).FindSubmatch(profile)
	if err != nil || found == nil {
		t.Fatalf("no size of the heap: %v", err)
	}
	f.heap, _ = strconv.Atoi(string(found[1]))
	f.heap /= 1_000_000
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v:\n%s", err, log.String())
	}
	return f
}

// processorTime is what a process has used, to a tenth of a second.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))
	user, err1 := strconv.Atoi(fields[12])
	system, err2 := strconv.Atoi(fields[13])
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	const tick = 10 * time.Millisecond
	return (time.Duration(user+system) * tick).Round(100 * time.Millisecond)
}

func number(t *testing.T, file, pattern string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// fill makes what the operator works on.
func fill(t *testing.T, c kubernetes.Interface, n int) {
	t.Helper()
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(8)
	for i := range n {
		g.Go(func() error {
			name := fmt.Sprintf("web-%d", i)
			if i%10 == 0 {
				s := &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Name: name},
					Data:       map[string][]byte{"password": bytes.Repeat([]byte(name), 100)},
				}
				if _, err := c.CoreV1().Secrets("default").Create(ctx, s, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}}
			s.Spec = corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": name},
				Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
			}
			if _, err := c.CoreV1().Services("default").Create(ctx, s, metav1.CreateOptions{}); err != nil {
				return err
			}
			_, err := c.AppsV1().Deployments("default").Create(ctx, deployment(name, fmt.Sprintf("web-%d", i-i%10)),
				metav1.CreateOptions{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// deployment is one with two containers, as people write them.
func deployment(name, secret string) *appsv1.Deployment {
	labels := map[string]string{"app": name, "team": "shop", "app.kubernetes.io/managed-by": "helm"}
	container := func(name, image string) corev1.Container {
		c := corev1.Container{
			Name: name, Image: image,
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		}
		for _, v := range []string{"LOG_LEVEL", "LOG_FORMAT", "REGION", "TENANT", "CACHE_SIZE", "ENDPOINT"} {
			c.Env = append(c.Env, corev1.EnvVar{Name: v, Value: "value-of-" + strings.ToLower(v)})
		}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config", ReadOnly: true}}
		return c
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels,
			Annotations: map[string]string{"cards.example.com/secret": secret},
		},
	}
	d.Spec.Replicas = new(int32)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{
			container("web", "registry.example.com/shop/web:1.0"),
			container("proxy", "registry.example.com/mesh/proxy:2.4"),
		},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}
	return d
}

// embedded serves localapi on loopback and returns a kubeconfig.
func embedded(t *testing.T) string {
	t.Helper()
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		<-served
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return kubeconfigOf(t, &rest.Config{Host: "http://" + l.Addr().String()})
}

func kubeconfigOf(t *testing.T, c *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"it": {Server: c.Host}},
		Contexts:       map[string]*api.Context{"it": {Cluster: "it"}},
		CurrentContext: "it",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// realServer starts kube-apiserver and returns a kubeconfig.
func realServer(t *testing.T) string {
	t.Helper()
	plane, err := upstream.Start(t.Context(), upstream.Options{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	return plane.Kubeconfig
}
