package tap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/internal/pipeview"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

// world is a manager with one controller, which marks ConfigMaps, below a tap.
type world struct {
	*Tap
	t    *testing.T
	user kubernetes.Interface
	runs atomic.Int64
	work time.Duration // of a reconcile that writes
	page http.Handler
	stop func() // ends the program, and waits until it has ended
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	var crash func()
	w.Tap = New(Options{
		Match: func(r *gate.Request) bool { return r.UserAgent == "program" },
		Crash: func() { crash() },
	})
	api := localapi.NewTestWith(t, localapi.Options{Gate: w.Gate()})
	w.user = kubernetes.NewForConfigOrDie(api.RESTConfig())
	config := api.RESTConfig()
	config.UserAgent = "program"
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.NewKlogr().V(9)))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			one, kill := context.WithCancel(ctx)
			crash = kill
			w.run(one, config)
			kill()
		}
	}()
	w.stop = func() { stop(); <-ended }
	t.Cleanup(w.stop)
	time.Sleep(time.Second)
	return w
}

// run runs the program once.
func (w *world) run(ctx context.Context, config *rest.Config) {
	i := inspect.New(inspect.Options{Tap: w.Tap})
	w.Attach(ctx, i.Recorder())
	mgr, err := manager.New(config, manager.Options{Inspect: i})
	if err != nil {
		w.t.Error(err)
		return
	}
	w.page = i.Handler(mgr)
	secrets := informer.InformerOptions{Kind: corev1.SchemeGroupVersion.WithKind("Secret")}
	if _, err := informer.ForOptions[*metav1.PartialObjectMetadata](mgr.Informers(), secrets); err != nil {
		w.t.Error(err)
		return
	}
	c := mgr.GetClient()
	if err := builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func[reconcile.Request](
		func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			w.runs.Add(1)
			var config corev1.ConfigMap
			if err := c.Get(ctx, req.NamespacedName, &config); err != nil || config.Data["marked"] != "" {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			time.Sleep(w.work)
			config.Data = map[string]string{"marked": "yes"}
			return reconcile.Result{}, c.Update(ctx, &config)
		})); err != nil {
		w.t.Error(err)
		return
	}
	if err := mgr.Run(ctx); err != nil {
		w.t.Error(err)
	}
}

func (w *world) create(name string) {
	w.t.Helper()
	if _, err := w.user.CoreV1().ConfigMaps("default").Create(w.t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) marked(name string) bool {
	w.t.Helper()
	config, err := w.user.CoreV1().ConfigMaps("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return config.Data["marked"] != ""
}

// held fails the test unless just these steps are held up.
func (w *world) held(want ...string) {
	w.t.Helper()
	synctest.Wait()
	var got []string
	for _, s := range w.state().Waiting {
		got = append(got, fmt.Sprintf("%s: %s", s.Stage, s.Text))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.t.Fatalf("held up: %q, want %q", got, want)
	}
}

// at fails the test unless the oldest step that is held up belongs to this part of the drawing.
func (w *world) at(resource, controller string) {
	w.t.Helper()
	synctest.Wait()
	if s := w.state().Waiting[0]; s.Resource != resource || s.Controller != controller {
		w.t.Fatalf("held up: %+v, want it at %q, %q", s, resource, controller)
	}
}

func (w *world) step(stage stage) {
	w.t.Helper()
	if !w.Tap.step(stage) {
		w.t.Fatalf("nothing is held up at stage %q", stage)
	}
}

// One object goes through the pipeline step by step.
func TestStepByStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Pause()
		w.create("a")
		w.held("event: ADDED configmaps default/a, version 11, to program")
		w.at("configmaps", "")
		w.step(atEvent)
		w.held("delta: Add configmaps default/a")
		w.at("configmaps", "")
		w.step(atDelta)
		w.held("key: controller configmap default/a")
		w.at("", "configmap")
		w.step(atKey)
		w.held("write: update configmaps default/a by program")
		w.at("", "")
		if w.marked("a") {
			t.Error("the write took effect while it was held up")
		}
		w.step("")
		w.held("event: MODIFIED configmaps default/a, version 12, to program")
		if !w.marked("a") {
			t.Error("the write has taken no effect")
		}
		if w.Tap.step(atWrite) || w.releaseOne(999) {
			t.Error("a step went on that was not held up")
		}
		w.Open(time.Second) // slow motion
		time.Sleep(10 * time.Second)
		w.held()
		if n := w.runs.Load(); n != 2 {
			t.Errorf("%d reconciles, want 2", n)
		}
	})
}

// A worker is not busy while a step is held up.
func TestHeldTimeIsNotBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.work = 3 * time.Second
		w.Pause()
		w.create("a")
		for _, stage := range []stage{atEvent, atDelta, atKey} {
			time.Sleep(time.Minute)
			w.step(stage)
		}
		time.Sleep(time.Minute) // The write is held up after three seconds.
		r := httptest.NewRequest(http.MethodGet, "/inspect/api/pipeline", nil)
		r.Host = "localhost"
		answer := httptest.NewRecorder()
		w.page.ServeHTTP(answer, r)
		var p pipeview.Pipeline
		if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if keys := p.Controllers[0].Processing; len(keys) != 1 || keys[0].For != w.work {
			t.Errorf("in work: %+v, want one key for %s", keys, w.work)
		}
	})
}

// A resource may have a cache of whole objects and one of metadata.
func TestCachesAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Pause()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
		secrets := w.user.CoreV1().Secrets("default")
		if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.at("secrets (metadata)", "")
		w.step(atEvent)
		w.at("secrets (metadata)", "")
		w.held("delta: Add secrets default/s in the cache of metadata objects")
	})
}

// After each fault the controller does its work in the end.
func TestFaults(t *testing.T) {
	for _, fault := range []fault{conflict, lostAnswer, cutWatch, crash} {
		t.Run(string(fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if err := w.inject(fault); err != nil {
					t.Fatal(err)
				}
				w.create("a")
				time.Sleep(5 * time.Minute)
				s := w.state()
				want := string(fault) + ": update configmaps default/a by program"
				if len(s.Happened) != 1 || s.Happened[0] != want || s.Fault != "" {
					t.Errorf("state %+v", s)
				}
				if !w.marked("a") {
					t.Error("not marked")
				}
				w.create("b")
				time.Sleep(time.Minute)
				if !w.marked("b") {
					t.Error("not marked after the fault")
				}
			})
		})
	}
}

// A program that stops is not held up.
func TestStopWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Pause()
		w.create("a")
		w.step(atEvent)
		w.held("delta: Add configmaps default/a")
	})
}

// A program that stops does not wait for a write that is held up, and the write has no effect.
func TestStopWhileAWriteIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Pause()
		w.create("a")
		w.step(atEvent)
		w.held("delta: Add configmaps default/a")
		w.step(atDelta)
		w.held("key: controller configmap default/a")
		w.step(atKey)
		w.held("write: update configmaps default/a by program")
		began := time.Now()
		w.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the program took %s to stop", took)
		}
		w.held()
		if w.marked("a") {
			t.Error("the write took effect although its program had stopped")
		}
	})
}

// paused returns a tap that holds every client up, and a function that returns a client by its user agent.
func paused(t *testing.T) (*world, func(agent string) kubernetes.Interface) {
	w := &world{t: t, Tap: New(Options{})}
	api := localapi.NewTestWith(t, localapi.Options{Gate: w.Gate()})
	as := func(agent string) kubernetes.Interface {
		config := api.RESTConfig()
		config.UserAgent = agent
		return kubernetes.NewForConfigOrDie(config)
	}
	w.user = as("kubectl/v1.37.2 (linux/amd64) kubernetes/1a2b3c")
	w.Pause()
	return w, as
}

// agent is the user agent of client-go.
const agent = "greeter/v1.0 (linux/amd64) kubernetes/1a2b3c"

// What kubectl does passes, and so do leases, recorded events and reviews of a program that is held up.
func TestNeverHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, as := paused(t)
		watching, err := w.user.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watching.Stop()
		w.create("a")
		if e := <-watching.ResultChan(); e.Type != watch.Added {
			t.Errorf("kubectl watches %v", e)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		program := as(agent)
		_, err1 := program.CoordinationV1().Leases("default").Create(ctx,
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		_, err2 := program.CoreV1().Events("default").Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: "a"},
			InvolvedObject: corev1.ObjectReference{Namespace: "default"},
		}, metav1.CreateOptions{})
		_, err3 := program.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"},
			}}, metav1.CreateOptions{})
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Error(err)
		}
		go func() {
			_ = program.CoreV1().ConfigMaps("default").Delete(ctx, "a", metav1.DeleteOptions{})
		}()
		w.held("write: delete configmaps default/a by greeter")
		w.Open(0)
	})
}

// A client that connects while everything is paused gets the objects that are there at once, whether it lists them or
// has them sent at the beginning of its watch. What happens afterwards is held up.
func TestConnectWhilePaused(t *testing.T) {
	for name, connect := range map[string]func(*testing.T, kubernetes.Interface) func() bool{
		"a streamed list": func(t *testing.T, c kubernetes.Interface) func() bool {
			f := informers.NewSharedInformerFactory(c, 0)
			maps := f.Core().V1().ConfigMaps().Informer()
			f.Start(t.Context().Done())
			return func() bool { return maps.HasSynced() && len(maps.GetStore().List()) > 0 }
		},
		"a watch without a list": func(t *testing.T, c kubernetes.Interface) func() bool {
			w, err := c.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			return func() bool { return (<-w.ResultChan()).Type == watch.Added }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, as := paused(t)
				w.create("a")
				there := connect(t, as(agent+"/informer"))
				synctest.Wait()
				if !there() {
					t.Error("the object is not there")
				}
				w.held()
				w.create("b")
				w.held("event: ADDED configmaps default/b, version 12, to greeter/informer")
			})
		})
	}
}

// A write whose client leaves has no effect, whether it is held up or only late.
func TestClientThatLeaves(t *testing.T) {
	for name, slow := range map[string]bool{"paused": false, "slow motion": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, as := paused(t)
				w.create("a")
				if slow {
					w.Open(time.Minute)
				}
				ctx, leave := context.WithCancel(t.Context())
				go func() {
					_ = as(agent).CoreV1().ConfigMaps("default").Delete(ctx, "a", metav1.DeleteOptions{})
				}()
				synctest.Wait()
				leave()
				w.held()
				time.Sleep(2 * time.Minute)
				w.marked("a") // fails if it is gone
			})
		})
	}
}

func TestHTTP(t *testing.T) {
	one := New(Options{})
	do := func(method, query string, header ...string) (int, string) {
		r := httptest.NewRequest(method, "/inspect/api/tap?"+query, nil)
		for n := 0; n+1 < len(header); n += 2 {
			r.Header.Set(header[n], header[n+1])
		}
		answer := httptest.NewRecorder()
		one.ServeHTTP(answer, r)
		return answer.Code, answer.Body.String()
	}
	for _, c := range []struct {
		method, query, want string
		code                int
	}{
		{"GET", "", `"paused":false`, 200},
		{"POST", "do=pause", `"paused":true`, 200},
		{"POST", "do=step&stage=key", "nothing is held up", 400},
		{"POST", "do=release&id=x", "no step", 400},
		{"POST", "do=inject&fault=crash", `there is no fault "crash"`, 400},
		{"POST", "do=inject&fault=conflict", `"fault":"conflict"`, 200},
		{"POST", "do=inject", `"faults":["conflict"`, 200},
		{"POST", "do=open&delay=-1s", "want a duration", 400},
		{"POST", "do=open&delay=1s", `"delay":1000000000`, 200},
		{"POST", "do=nothing", "want pause", 400},
		{"DELETE", "", "use GET or POST", 405},
	} {
		if code, body := do(c.method, c.query); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %q: %d %s", c.method, c.query, code, body)
		}
	}
	if code, _ := do("POST", "do=pause", "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
		t.Errorf("a page of another origin: %d", code)
	}
	var s state
	if _, body := do("GET", ""); json.Unmarshal([]byte(body), &s) != nil || s.Paused {
		t.Errorf("state %s", body)
	}
}
