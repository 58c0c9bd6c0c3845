package informer

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	changed "github.com/flyball-dev/flyball/peers/informer/program/flyball"
	original "github.com/flyball-dev/flyball/peers/informer/program/upstream"
)

// TestProgramsDifferInImportsAlone: everything else in the two programs is the same.
func TestProgramsDifferInImportsAlone(t *testing.T) {
	read := func(folder string) (rest, imports []string) {
		text, err := os.ReadFile("program/" + folder + "/program.go")
		must(t, err)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "tools/cache") || strings.Contains(line, "util/workqueue") ||
				strings.Contains(line, "flyball-dev") {
				imports = append(imports, line)
			} else {
				rest = append(rest, line)
			}
		}
		return rest, imports
	}
	a, before := read("upstream")
	b, after := read("flyball")
	equal(t, "but for imports", b, a)
	if len(before) != 2 || len(after) != 2 {
		t.Errorf("imports %q and %q", before, after)
	}
}

// TestProgram: the same program on both sides, each against an embedded API, does the same.
func TestProgram(t *testing.T) {
	programs := map[string]func(kubernetes.Interface, func(string)) (interface{ Run(context.Context) error }, error){
		"clientgo": func(c kubernetes.Interface, note func(string)) (interface{ Run(context.Context) error }, error) {
			return original.New(c, note)
		},
		"flyball": func(c kubernetes.Interface, note func(string)) (interface{ Run(context.Context) error }, error) {
			return changed.New(c, note)
		},
	}
	for name, program := range programs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := klog.NewContext(t.Context(), klog.Logger{})
				w := newWorld(t)
				told := &recorder{}
				p, err := program(w.client, func(line string) { told.note("%s", line) })
				must(t, err)
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				var run sync.WaitGroup
				run.Go(func() { must(t, p.Run(ctx)) })
				w.scenario(t, told)
				cancel()
				run.Wait()
			})
		})
	}
}

// world is an embedded API on which a write or a frame of a watch can be made to fail.
type world struct {
	client kubernetes.Interface
	// failing makes writes of lists fail; lose is the name of a pod whose deletion nobody gets to see.
	failing atomic.Bool
	lose    atomic.Value
}

func newWorld(t *testing.T) *world {
	w := &world{}
	w.lose.Store("")
	server, err := localapi.New(localapi.Options{Gate: gate.Funcs{
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			if w.failing.Load() && r.Resource == "configmaps" && r.Mutates() {
				return gate.FailWith(apierrors.NewInternalError(errors.New("not now")))
			}
			return gate.Verdict{}
		},
		OnFrame: func(_ context.Context, r *gate.Request, f gate.Frame) gate.Verdict {
			if r.Resource == "pods" && f.Type == watch.Deleted && f.Name == w.lose.Load() {
				return gate.FailWith(apierrors.NewResourceExpired("history is gone"))
			}
			return gate.Verdict{}
		},
	}})
	must(t, err)
	t.Cleanup(func() { must(t, server.Close()) })
	config := server.RESTConfig()
	config.QPS = -1
	w.client, err = kubernetes.NewForConfig(config)
	must(t, err)
	return w
}

// list is what the program wrote for a service, once all is quiet.
func (w *world) list(t *testing.T, service string) string {
	t.Helper()
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	m, err := w.client.CoreV1().ConfigMaps("default").Get(t.Context(), service, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "(none)"
	}
	must(t, err)
	return m.Data["pods"]
}

func (w *world) create(t *testing.T, name string) {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	_, err := w.client.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
}

func (w *world) delete(t *testing.T, name string) {
	t.Helper()
	must(t, w.client.CoreV1().Pods("default").Delete(t.Context(), name, *metav1.NewDeleteOptions(0)))
}

func (w *world) scenario(t *testing.T, told *recorder) {
	says := func(what, want string) {
		t.Helper()
		if got := w.list(t, "web"); got != want {
			t.Errorf("%s: list %q, want %q", what, got, want)
		}
	}
	services := w.client.CoreV1().Services("default")
	w.create(t, "one")
	says("no service", "(none)")
	_, err := services.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Port: 80}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	says("service", "one")
	w.create(t, "two")
	w.create(t, "three")
	says("more pods", "one three two")
	w.delete(t, "one")
	says("a pod less", "three two")
	equal(t, "tombstones so far", tombstones(told), nil)

	w.lose.Store("two")
	w.delete(t, "two")
	says("a deletion that nobody saw", "three")
	equal(t, "tombstones", tombstones(told), []string{"tombstone of default/two"})

	w.failing.Store(true)
	w.create(t, "four")
	time.Sleep(30 * time.Millisecond) // Retries after 5, 15 and 35 ms.
	synctest.Wait()
	w.failing.Store(false)
	says("a write that failed", "four three")
	if notes := told.take(); !slices.Contains(notes, "retry 1 of default/web") ||
		!slices.Contains(notes, "retry 2 of default/web") {
		t.Errorf("notes %q", notes)
	}
	must(t, services.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	says("no service any more", "(none)")
}

// tombstones are the tombstones that the program recorded. It also notes retries, of which a stale cache causes some in
// any run.
func tombstones(told *recorder) []string {
	return slices.DeleteFunc(told.take(), func(line string) bool { return !strings.HasPrefix(line, "tombstone") })
}
