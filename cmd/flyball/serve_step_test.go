package main

import (
	"bufio"
	"context"
	"io"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

// stepped is flyball serve with a page.
type stepped struct {
	t      *testing.T
	ctx    context.Context
	page   string // the URL of the page
	config *rest.Config
	code   chan int // receives the exit code
}

// startPage runs flyball serve with flags until it says where its page is.
func startPage(t *testing.T, flags ...string) *stepped {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	told, out := io.Pipe()
	s := &stepped{t: t, ctx: ctx, code: make(chan int, 1)}
	go func() {
		defer out.Close()
		s.code <- run(ctx, append([]string{"serve", "--kubeconfig", kubeconfig}, flags...), out, io.Discard)
	}()
	for lines := bufio.NewScanner(told); s.page == "" && lines.Scan(); {
		s.page = regexp.MustCompile(`http://127\.0\.0\.1:\d+/inspect/`).FindString(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, told) }()
	s.config = configOf(ctx, t, kubeconfig)
	return s
}

// as returns a config with a program's name, in the form of client-go's user agents.
func (s *stepped) as(program string) *rest.Config {
	config := rest.CopyConfig(s.config)
	config.UserAgent = program + "/v1.0 (linux/amd64) kubernetes/1a2b3c"
	return config
}

// await returns when a step with the text is held up, and lets it through if so asked.
func (s *stepped) await(step string, through bool) {
	s.t.Helper()
	for s.ctx.Err() == nil {
		for _, w := range s.held() {
			if w["stage"].(string)+": "+w["text"].(string) != step {
				continue
			}
			if through {
				post(s.t, s.page+"api/tap?do=step&stage="+url.QueryEscape(w["stage"].(string)))
			}
			return
		}
	}
	s.t.Fatalf("held up: %v, want %q", s.held(), step)
}

func (s *stepped) held() (steps []map[string]any) {
	waiting, _ := get(s.t, s.page+"api/tap")["waiting"].([]any)
	for _, w := range waiting {
		steps = append(steps, w.(map[string]any))
	}
	return steps
}

// stop ends the program as Ctrl-C does.
func (s *stepped) stop() {
	s.t.Helper()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
		s.t.Fatal(err)
	}
	if code := <-s.code; code != 0 {
		s.t.Errorf("exit code %d", code)
	}
}

// TestServeStep steps a controller of another program through one event and one write. A write whose client leaves has
// no effect, and Ctrl-C ends everything while a write is held up.
func TestServeStep(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := startPage(t, "--controllers=", "--page=127.0.0.1:0", "--step")
	person := kubernetes.NewForConfigOrDie(s.as("kubectl")).CoreV1().ConfigMaps("default")
	running, stop := context.WithCancel(s.ctx)
	defer stop()
	mgr, err := newMarker(s.as("marker"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(running) }()
	if err := mgr.Informers().WaitForSync(s.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := person.Create(s.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	look := func() (marked bool, version string) {
		config, err := person.Get(s.ctx, "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return config.Data["marked"] != "", config.ResourceVersion
	}
	_, version := look()
	s.await("event: ADDED configmaps default/a, version "+version+", to marker", true)
	s.await("write: update configmaps default/a by marker", false)
	if marked, _ := look(); marked {
		t.Error("the write took effect while it was held up")
	}
	s.await("write: update configmaps default/a by marker", true)
	for marked := false; !marked; { // look fails when the time is up
		marked, version = look()
	}
	s.await("event: MODIFIED configmaps default/a, version "+version+", to marker", false)

	leaving, leave := context.WithCancel(s.ctx)
	other := kubernetes.NewForConfigOrDie(s.as("other")).CoreV1().ConfigMaps("default")
	deleted := make(chan error, 1)
	go func() { deleted <- other.Delete(leaving, "a", metav1.DeleteOptions{}) }()
	s.await("write: delete configmaps default/a by other", false)
	leave()
	if err := <-deleted; err == nil {
		t.Error("the write of the client that left succeeded")
	}
	for len(s.held()) > 1 && s.ctx.Err() == nil {
		continue // The server is about to notice that the client has left.
	}
	if got := s.held(); len(got) != 1 || got[0]["stage"] != "event" {
		t.Errorf("held up: %v", got)
	}

	go func() { deleted <- other.Delete(s.ctx, "a", metav1.DeleteOptions{}) }()
	s.await("write: delete configmaps default/a by other", false)
	s.stop()
	if err := <-deleted; err == nil || apierrors.IsNotFound(err) {
		t.Errorf("the write that was held up at the end: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// newMarker returns a manager whose controller marks ConfigMaps.
func newMarker(config *rest.Config) (*manager.Manager, error) {
	mgr, err := manager.New(config, manager.Options{})
	if err != nil {
		return nil, err
	}
	c := mgr.GetClient()
	return mgr, builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func[reconcile.Request](
		func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			var config corev1.ConfigMap
			if err := c.Get(ctx, r.NamespacedName, &config); err != nil || r.Name != "a" {
				return reconcile.Result{}, err
			}
			config.Data = map[string]string{"marked": "yes"}
			return reconcile.Result{}, c.Update(ctx, &config)
		}))
}

// TestServeStepsItsOwnControllers: the first step that is held up is of what the user did, and Ctrl-C ends everything
// while a key is held up.
func TestServeStepsItsOwnControllers(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := startPage(t, "--controllers=deployment", "--page=127.0.0.1:0", "--step")
	if steps := s.held(); len(steps) > 0 {
		t.Errorf("held up at the start: %v", steps)
	}
	faults := get(t, s.page+"api/tap")["faults"]
	if got, _ := faults.([]any); slices.Contains(got, any("crash")) || len(got) != 3 {
		t.Errorf("the faults %v are offered", got)
	}
	person := kubernetes.NewForConfigOrDie(s.as("kubectl")).AppsV1().Deployments("default")
	d, err := person.Create(s.ctx, deployment("web"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Split(rest.DefaultKubernetesUserAgent(), "/")[0] + "/controllers"
	s.await("event: ADDED deployments default/web, version "+d.ResourceVersion+", to "+own, true)
	s.await("delta: Add deployments.apps default/web", true)
	s.await("key: controller deployment-controller default/web", false)
	s.stop()
}

// TestServePage: the page shows the controllers, without the panel for step mode.
func TestServePage(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := startPage(t, "--page=127.0.0.1:0")
	pipeline := get(t, s.page+"api/pipeline")
	if controllers, _ := pipeline["controllers"].([]any); len(controllers) == 0 || pipeline["tap"] == true {
		t.Errorf("pipeline %v", pipeline)
	}
	s.stop()
}
