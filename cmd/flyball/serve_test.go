package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/cmd/flyball/nodes"
	"github.com/flyball-dev/flyball/cmd/flyball/serve"
	"github.com/flyball-dev/flyball/localapi"
)

// TestServe: the kubeconfig leads to an API whose Deployments get pods, and the end of the context ends everything.
func TestServe(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	logged := captureLog(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	type outcome struct {
		code         int
		stdout, errs string
	}
	ended := make(chan outcome, 1)
	serving, stop := context.WithCancel(ctx)
	go func() {
		code, out, errs := flyball(serving, "serve", "--kubeconfig", kubeconfig)
		ended <- outcome{code, out, errs}
	}()
	client := clientOf(ctx, t, kubeconfig)
	if log := logged(); strings.Contains(log, "deprecated") {
		t.Errorf("the controllers were warned:\n%s", log)
	}
	one := deployment("web")
	w, err := client.AppsV1().Deployments("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=web"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.AppsV1().Deployments("default").Create(ctx, one, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	available := func(e watch.Event) bool {
		d, ok := e.Object.(*appsv1.Deployment)
		return ok && d.Status.AvailableReplicas == 1
	}
	for e := range w.ResultChan() {
		if available(e) {
			w.Stop()
			break
		}
	}
	if err := ctx.Err(); err != nil {
		t.Fatalf("the deployment has no pod: %v", err)
	}
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 || pods.Items[0].Status.Message != nodes.NotRun {
		t.Errorf("the pods do not say that they are not run: %v, %v", pods, err)
	}
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := client.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	if err != nil || roots.Data["ca.crt"] != string(config.Clusters["flyball"].CertificateAuthorityData) {
		t.Errorf("the namespace does not have the certificates of the kubeconfig: %v, %v", roots, err)
	}
	if log := logged(); !strings.Contains(log, "Manager started") || strings.Contains(log, "deprecated") {
		t.Errorf("the log has a warning, or nothing:\n%s", log)
	}
	stop()
	o := <-ended
	if o.code != 0 || !strings.Contains(o.stdout, "export KUBECONFIG="+kubeconfig) ||
		!strings.Contains(o.stdout, "\nPods are not run: a fake kubelet only reports that they are") {
		t.Errorf("exit code %d, stdout %q, stderr %q", o.code, o.stdout, o.errs)
	}
}

// captureLog has the log of this process written to what the function returns, for the time of a test.
func captureLog(t *testing.T) func() string {
	t.Helper()
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	klog.SetLogger(logger)
	return func() string { return logger.GetSink().(ktesting.Underlier).GetBuffer().String() }
}

// TestServeWithoutKubelet: pods stay as they are and say so, and namespaces can be deleted all the same.
func TestServeWithoutKubelet(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kubeconfig, stop := startServe(ctx, t, "--controllers=", "--kubelet=off")
	core := clientOf(ctx, t, kubeconfig).CoreV1()
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
	if _, err := core.Pods("shop").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := core.Namespaces().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=shop"})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := core.Pods("shop").Get(ctx, "web", metav1.GetOptions{}); err != nil ||
		p.Status.Phase != corev1.PodPending || p.Spec.NodeName != "" {
		t.Errorf("the pod: %v, %v", p, err)
	}
	if err := core.Namespaces().Delete(ctx, "shop", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	gone := false
	for e := range w.ResultChan() {
		if gone = e.Type == watch.Deleted; gone {
			w.Stop()
			break
		}
	}
	if out, _ := stop(); !gone || !strings.Contains(out, "\nPods are not run: they stay Pending") {
		t.Errorf("namespace gone: %v; said: %q", gone, out)
	}
}

// startServe runs flyball serve, which writes a kubeconfig. stop ends it and returns what it has said.
func startServe(ctx context.Context, t *testing.T,
	flags ...string,
) (kubeconfig string, stop func() (stdout, errs string)) {
	t.Helper()
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	serving, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	var stdout, errs string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, stdout, errs = flyball(serving, append([]string{"serve", "--kubeconfig", kubeconfig}, flags...)...)
	}()
	return kubeconfig, func() (string, string) {
		cancel()
		<-ended
		return stdout, errs
	}
}

// clientOf waits for a kubeconfig and returns its client, which keeps no connection.
func clientOf(ctx context.Context, t *testing.T, path string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(configOf(ctx, t, path))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// configOf waits for a kubeconfig.
func configOf(ctx context.Context, t *testing.T, path string) *rest.Config {
	t.Helper()
	for {
		if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal("no kubeconfig was written")
		case <-time.After(10 * time.Millisecond):
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // No limit: to fill a disk takes hundreds of requests.
	return config
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "image"}}},
			},
		},
	}
}

func TestServeRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--addr", "nonsense"}, "--addr"},
		{
			[]string{"serve", "--addr", "127.0.0.1:70000"},
			"--addr: \"127.0.0.1:70000\": the port must be between 0 and 65535",
		},
		{[]string{"serve", "--addr", "127.0.0.1:-1"}, "the port must be"},
		{[]string{"serve", "--addr", "0.0.0.0:0"}, "not a loopback address"},
		{[]string{"serve", "--controllers", "nonsense"}, "--controllers"},
		{[]string{"serve", "--tenant", "../a"}, "--tenant"},
		{[]string{"serve", "more"}, `unexpected argument "more"`},
	} {
		if code, _, errs := flyball(t.Context(), c.args...); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d, %q, want 2 and %q", c.args, code, errs, c.want)
		}
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if code, _, errs := flyball(t.Context(), "serve", "--addr", busy.Addr().String()); code != 1 ||
		!strings.Contains(errs, "address already in use; --addr chooses another one") {
		t.Errorf("a port in use: exit code %d, %q", code, errs)
	}
}

// TestServeStore: what was written is there the next time, for its tenant alone; and only one process at a time has
// the store.
func TestServeStore(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "store")
	serve := func(tenant string, use func(kubernetes.Interface)) {
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		serving, stop := context.WithCancel(ctx)
		ended := make(chan string, 1)
		go func() {
			_, _, errs := flyball(serving, "serve", "--kubeconfig", kubeconfig, "--store", dir, "--tenant", tenant,
				"--controllers", "", "--kubelet=false")
			ended <- errs
		}()
		use(clientOf(ctx, t, kubeconfig))
		stop()
		if errs := <-ended; errs != "" {
			t.Error(errs)
		}
	}
	var uid types.UID
	serve("a", func(c kubernetes.Interface) {
		d, err := c.AppsV1().Deployments("default").Create(ctx, deployment("web"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		uid = d.UID
		code, _, errs := flyball(ctx, "serve", "--store", dir)
		if code != 1 || !strings.Contains(errs, "in use by process "+strconv.Itoa(os.Getpid())) {
			t.Errorf("a second server on the store: exit code %d, %q", code, errs)
		}
	})
	serve("a", func(c kubernetes.Interface) {
		d, err := c.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil || d.UID != uid {
			t.Errorf("the next time: %v, %v", d, err)
		}
	})
	serve("ab", func(c kubernetes.Interface) {
		list, err := c.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 0 {
			t.Errorf("another tenant sees %v, %v", list, err)
		}
	})
}

// TestServeStoreKeepsCredentials: a client goes on after a restart of the server, with the kubeconfig that it has read
// before. Another tenant does not accept it. If the port is taken, only the address differs.
func TestServeStoreKeepsCredentials(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "store")
	start := func(tenant string) (*rest.Config, func()) {
		kubeconfig, stop := startServe(ctx, t, "--store", dir, "--tenant", tenant, "--controllers=", "--kubelet=off")
		return configOf(ctx, t, kubeconfig), func() { stop() }
	}
	ask := func(config *rest.Config) error {
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	}
	first, stop := start("a")
	if err := ask(first); err != nil {
		t.Error(err)
	}
	stop()
	_, stop = start("a")
	if err := ask(first); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if kept := configOf(ctx, t, filepath.Join(dir, "kubeconfig-a")); kept.Host != first.Host {
		t.Errorf("the kubeconfig in the store is for %s, not for %s", kept.Host, first.Host)
	}
	stop()
	other, stop := start("b")
	stranger := rest.CopyConfig(first)
	if stranger.Host = other.Host; ask(stranger) == nil {
		t.Error("another tenant accepts the credentials")
	}
	stop()
	busy, err := net.Listen("tcp", strings.TrimPrefix(first.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	elsewhere, stop := start("a")
	defer stop()
	first.Host = elsewhere.Host
	if err := ask(first); err != nil {
		t.Errorf("on another port: %v", err)
	}
	for _, file := range []string{"kubeconfig-a", "authority-a.key"} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
}

// TestServeRefusesDamagedCredentials: the message says what to remove.
func TestServeRefusesDamagedCredentials(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	ended, end := context.WithCancel(t.Context())
	end()
	run := func() string {
		_, _, errs := flyball(ended, "serve", "--store", dir, "--controllers=", "--kubelet=off")
		return errs
	}
	if errs := run(); errs != "" {
		t.Fatal(errs)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig-"+localapi.DefaultTenant)
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if errs := run(); !strings.Contains(errs, kubeconfig+": it was not written by flyball serve: remove it") {
		t.Error(errs)
	}
	if err := os.Remove(kubeconfig); err != nil {
		t.Fatal(err)
	}
	if errs := run(); errs != "" {
		t.Error(errs)
	}
}

// TestServeKeepsKubeconfigs: a file with somebody's clusters is not overwritten; one that an earlier serve has left is.
func TestServeKeepsKubeconfigs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	mine := filepath.Join(t.TempDir(), "config")
	const precious = "apiVersion: v1\nkind: Config\ncurrent-context: production\n"
	if err := os.WriteFile(mine, []byte(precious), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := flyball(ctx, "serve", "--kubeconfig", mine); code != 1 ||
		!strings.Contains(errs, mine+": it would be overwritten") {
		t.Errorf("exit code %d, %q", code, errs)
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != precious {
		t.Errorf("the file is %q, %v", text, err)
	}
	if err := errors.Join(os.WriteFile(mine, nil, 0o600), os.Chmod(mine, 0o644)); err != nil {
		t.Fatal(err)
	}
	known, err := serve.NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	earlier, err := serve.Open(ctx, "127.0.0.1:0", known, nil)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := os.Open(mine)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(mine, link); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(earlier.WriteKubeconfig(link), earlier.Close()); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(opened); err != nil || len(text) > 0 {
		t.Errorf("who had opened the file before reads %q, %v", text, err)
	}
	if i, err := os.Lstat(link); err != nil || i.Mode().IsRegular() {
		t.Errorf("the link has mode %v, %v", i.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(mine)); err != nil || len(left) != 1 {
		t.Errorf("beside the file there are %v, %v", left, err)
	}
	if i, err := os.Stat(mine); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("a file that was there has mode %v, %v", i.Mode(), err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if code, out, errs := flyball(ended, "serve", "--kubeconfig", mine, "--controllers=",
		"--kubelet=false"); !strings.Contains(out, mine) {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
}
