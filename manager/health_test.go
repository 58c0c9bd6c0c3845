package manager_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

func get(m *manager.Manager, path string) (int, string) {
	w := httptest.NewRecorder()
	m.HealthHandler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code, w.Body.String()
}

// forbidPods answers like an API server whose RBAC does not allow the user to list pods.
func forbidPods(r *gate.Request) gate.Verdict {
	if r.Resource != "pods" {
		return gate.Verdict{}
	}
	return gate.FailWith(apierrors.NewForbidden(corev1.Resource("pods"), "",
		errors.New(`User "intern" cannot `+r.Verb+` resource "pods" in API group "" at the cluster scope`)))
}

// podController adds a controller of pods, which has nothing to do.
func podController(t *testing.T, m *manager.Manager) {
	t.Helper()
	pods, err := informer.For[*corev1.Pod](m.Informers())
	if err != nil {
		t.Fatal(err)
	}
	c := reconcile.New("pod-controller",
		reconcile.Func[reconcile.Request](
			func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil },
		), reconcile.Options[reconcile.Request]{})
	if err := c.Watch(source.Kind(pods, handler.EnqueueObject[*corev1.Pod]())); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(c); err != nil {
		t.Fatal(err)
	}
}

func TestMissingPermissionIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse(forbidPods)
		m := w.manager(t, manager.Options{})
		podController(t, m)
		l := live(t, m)
		time.Sleep(10 * time.Minute)

		const text = `cannot list pods at the cluster scope: forbidden: User "intern" cannot list resource "pods" in API group "" at the cluster scope`
		if err := m.Ready(); err == nil || err.Error() != "informer pods: "+text {
			t.Errorf("ready: %v", err)
		}
		if code, body := get(m, "/readyz"); code != 503 || body != "[-]informer pods: "+text+"\n" {
			t.Errorf("readyz: %d %s", code, body)
		}
		if code, body := get(m, "/livez"); code != 200 || body != "ok\n" {
			t.Errorf("livez: %d %s", code, body)
		}
		if code, body := get(m, "/healthz/pod-controller"); code != 500 || !strings.Contains(body, text) {
			t.Errorf("healthz of the controller: %d %s", code, body)
		}
		if lines := l.logs.with("intern"); len(lines) != 1 {
			t.Errorf("%d log lines in ten minutes, want one: %q", len(lines), lines)
		}

		w.refuse(nil) // granted
		time.Sleep(5 * time.Minute)
		if code, body := get(m, "/readyz?verbose"); code != 200 ||
			body != "[+]manager ok\n[+]informer pods ok\n[+]pod-controller ok\nreadyz check passed\n" {
			t.Errorf("readyz once granted: %d %s", code, body)
		}
		l.mustEnd()
	})
}

func TestPermissionTakenAwayLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{})
		podController(t, m)
		l := live(t, m)
		time.Sleep(time.Minute)
		if err := m.Ready(); err != nil {
			t.Fatal(err)
		}
		w.refuse(forbidPods)
		time.Sleep(30 * time.Minute) // the server ends every watch within some minutes
		if err := m.Ready(); err == nil ||
			!strings.Contains(err.Error(), `User "intern" cannot watch resource "pods"`) &&
				!strings.Contains(err.Error(), `User "intern" cannot list resource "pods"`) {
			t.Errorf("ready: %v", err)
		}
		w.refuse(nil)
		time.Sleep(5 * time.Minute)
		if err := m.Ready(); err != nil {
			t.Errorf("granted again: %v", err)
		}
		l.mustEnd()
	})
}

func TestOutageIsNotOurProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{})
		podController(t, m)
		l := live(t, m)
		w.refuse(func(*gate.Request) gate.Verdict { return gate.Verdict{Action: gate.Drop} })
		time.Sleep(30 * time.Minute)
		if code, body := get(m, "/livez"); code != 200 {
			t.Errorf("livez: %d %s", code, body)
		}
		code, body := get(m, "/readyz")
		if code != 200 || !strings.Contains(body, "[+]informer pods: cannot") {
			t.Errorf("readyz: %d %s", code, body)
		}
		l.mustEnd()
	})
}

func TestLeaderInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := elected()
		first := w.manager(t, o)
		o.LeaderElection.Identity = "host-2"
		second := w.manager(t, o)
		if err := second.Add(runnable{name: "guarded", run: untilStopped}); err != nil {
			t.Fatal(err)
		}
		a := live(t, first)
		b := live(t, second)
		time.Sleep(time.Minute)
		if code, body := get(first, "/readyz"); code != 200 || body != "ok\n[+]leader: this process, host-1\n" {
			t.Errorf("leader: %d %q", code, body)
		}
		if code, body := get(second, "/readyz"); code != 200 || body != "ok\n[+]leader: waiting, held by host-1\n" {
			t.Errorf("follower: %d %q", code, body)
		}
		if code, body := get(second, "/healthz/guarded"); code != 200 ||
			body != "[+]guarded: waiting for the leader lease\n" {
			t.Errorf("its runnable: %d %q", code, body)
		}
		if code, body := get(second, "/healthz/nonesuch"); code != 404 || body != "unknown check; known: guarded\n" {
			t.Errorf("unknown runnable: %d %q", code, body)
		}
		a.mustEnd()
		b.mustEnd()
	})
}

// A default identity is shown, too: it names the Pod.
func TestLeaderWithoutAnIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := elected()
		o.LeaderElection.Identity = ""
		l := live(t, w.manager(t, o))
		time.Sleep(time.Minute)
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		if _, body := get(l.Manager, "/readyz"); !strings.Contains(body, "[+]leader: this process, "+host+"_") {
			t.Errorf("leader: %q", body)
		}
		l.mustEnd()
	})
}

// The readiness of a follower or a leader does not depend on the server. To restart a process, or to take its metrics
// and webhooks out of service, would not help, and its warm caches would be lost. But a follower that has never read
// the lease is not ready.
func TestOutageDoesNotMakeAFollowerUnready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := elected()
		leader := live(t, w.manager(t, o))
		o.LeaderElection.Identity = "host-2"
		o.LeaderElection.Survive = true
		m := w.manager(t, o)
		follower := live(t, m)
		time.Sleep(time.Minute)
		w.refuse(func(*gate.Request) gate.Verdict { return gate.Verdict{Action: gate.Drop} })
		for range 60 {
			time.Sleep(10 * time.Second)
			if code, body := get(m, "/readyz"); code != 200 {
				t.Fatalf("readyz: %d %s", code, body)
			}
		}
		if _, body := get(m, "/readyz"); !strings.Contains(body, "[+]leader: waiting, get lease") {
			t.Errorf("readyz does not say why it waits: %s", body)
		}
		w.refuse(leases)
		fresh := live(t, w.manager(t, o))
		time.Sleep(time.Minute)
		if err := fresh.Ready(); err == nil || !strings.Contains(err.Error(), "leader: ") {
			t.Errorf("one that never read the lease is ready: %v", err)
		}
		w.refuse(nil)
		time.Sleep(time.Minute)
		follower.mustEnd()
		fresh.mustEnd()
		if err := leader.end(); err == nil {
			t.Error("the leader kept the lease")
		}
	})
}

// Somebody has created a lease that never expires.
func TestHealthShowsALeaseThatNeverExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newWorld(t).manager(t, elected())
		holder, seconds, now := "gone", int32(math.MaxInt32), metav1.NowMicro()
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "flyball-manager"}}
		lease.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now,
			AcquireTime: &now,
		}
		if _, err := clientset(m).CoordinationV1().Leases("kube-system").Create(t.Context(), lease,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		time.Sleep(time.Hour)
		const says = "ok\n[+]leader: waiting, held by gone, whose lease ends in 596522h14m7s unless renewed\n"
		if code, body := get(m, "/readyz"); code != 200 || body != says {
			t.Errorf("%d %s", code, body)
		}
		l.mustEnd()
	})
}

func TestForbiddenLeaseIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse(func(r *gate.Request) gate.Verdict {
			if r.Resource != "leases" {
				return gate.Verdict{}
			}
			return gate.FailWith(
				apierrors.NewForbidden(corev1.Resource("leases"), r.Name,
					errors.New(`User "intern" cannot get resource "leases"`)),
			)
		})
		m := w.manager(t, elected())
		l := live(t, m)
		time.Sleep(10 * time.Minute)
		if err := m.Ready(); err == nil ||
			!strings.Contains(err.Error(), `leader: get lease kube-system/flyball-manager`) ||
			!strings.Contains(err.Error(), `User "intern" cannot get resource "leases"`) {
			t.Errorf("ready: %v", err)
		}
		if lines := l.logs.with("intern"); len(lines) != 1 {
			t.Errorf("%d log lines in ten minutes, want 1: %q", len(lines), lines)
		}
		l.mustEnd()
	})
}

func TestRunnableSaysWhatItLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newWorld(t).manager(t, manager.Options{})
		if err := m.Add(
			runnable{name: "pump", run: untilStopped, health: func() error { return errors.New("no water") }},
		); err != nil {
			t.Fatal(err)
		}
		if err := m.Ready(); err == nil || err.Error() != "manager: not started" {
			t.Errorf("before Run: %v", err)
		}
		l := live(t, m)
		if code, body := get(m, "/readyz?verbose"); code != 503 ||
			body != "[+]manager ok\n[-]pump: no water\nreadyz check failed\n" {
			t.Errorf("readyz: %d %q", code, body)
		}
		if code, body := get(m, "/livez?verbose"); code != 200 || !strings.Contains(body, "[-]pump: no water") {
			t.Errorf("livez: %d %q", code, body)
		}
		l.mustEnd()
		if err := m.Ready(); err == nil || !strings.Contains(err.Error(), "manager: stopping") {
			t.Errorf("after the stop: %v", err)
		}
	})
}

// A runnable may lack access to every resource. The report is still one readable line.
func TestManyReasonsAreCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lacks []error
		for i := range 60 {
			lacks = append(lacks, fmt.Errorf("no water in %d", i))
		}
		m := newWorld(t).manager(t, manager.Options{})
		if err := m.Add(
			runnable{name: "pump", run: untilStopped, health: func() error { return errors.Join(lacks...) }},
		); err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		want := "[-]pump: no water in 0; no water in 1; no water in 2; no water in 3; no water in 4; and 55 more\n"
		if code, body := get(m, "/readyz"); code != 503 || body != want {
			t.Errorf("readyz: %d %q", code, body)
		}
		l.mustEnd()
	})
}

// noting is a runnable that has a note but no problem.
type noting struct{ runnable }

func (noting) Note() string { return "48 of 50 buckets are full" }

func TestHealthShowsNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newWorld(t).manager(t, manager.Options{})
		var health error
		if err := m.Add(
			noting{runnable{name: "pump", run: untilStopped, health: func() error { return health }}},
		); err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		synctest.Wait()
		if code, body := get(m, "/readyz?verbose"); code != 200 ||
			!strings.Contains(body, "[+]pump: 48 of 50 buckets are full\n") {
			t.Errorf("readyz: %d %s", code, body)
		}
		health = errors.New("no water")
		if code, body := get(m, "/readyz?verbose"); code != 503 || !strings.Contains(body, "[-]pump: no water\n") {
			t.Errorf("readyz: %d %s", code, body)
		}
		l.mustEnd()
	})
}
