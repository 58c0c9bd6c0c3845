package manager_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// heir is a manager that waits for a lease, which a stranger holds at first. It records the calls of its controller.
type heir struct {
	*life
	t     *testing.T
	world *world
	admin kubernetes.Interface

	mu         sync.Mutex
	controller *reconcile.Controller[reconcile.Request] // of the latest tenure
	requests   []string
	began      time.Time // when the first of the requests began
	heard      []string  // the events that the handler received
	wrote      error     // the error of the event handler's write
}

// inherit starts an heir, and creates ConfigMaps of these names.
func inherit(t *testing.T, o manager.Options, names ...string) *heir {
	t.Helper()
	w := newWorld(t)
	h := &heir{t: t, world: w, admin: kubernetes.NewForConfigOrDie(w.server.RESTConfig())}
	for _, name := range names {
		createConfigMap(t, h.admin, name)
	}
	h.bequeath("stranger")
	m := w.manager(t, o)
	cms, err := informer.For[*corev1.ConfigMap](m.Informers())
	if err != nil {
		t.Fatal(err)
	}
	r, err := manager.Rebuilt(func() (manager.Runnable, error) {
		c := reconcile.New("heir", h, reconcile.Options[reconcile.Request]{})
		h.mu.Lock()
		h.controller = c
		h.mu.Unlock()
		return c, c.Watch(source.Kind(cms,
			handler.EnqueueMapped(func(ctx context.Context, cm *corev1.ConfigMap) []reconcile.Request {
				h.hear(ctx, clientset(m), cm)
				return []reconcile.Request{reconcile.RequestFor(cm)}
			})))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Add(r); err != nil {
		t.Fatal(err)
	}
	h.life = live(t, m)
	time.Sleep(time.Minute)
	return h
}

// bequeath sets the holder of the lease; "" releases it.
func (h *heir) bequeath(holder string) {
	h.t.Helper()
	leases := h.admin.CoordinationV1().Leases("kube-system")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "flyball-manager"}}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(holder), LeaseDurationSeconds: ptr.To[int32](36_000),
		RenewTime: ptr.To(metav1.NowMicro()),
	}
	if holder == "" {
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](1)
	}
	_ = leases.Delete(h.t.Context(), lease.Name, metav1.DeleteOptions{})
	if _, err := leases.Create(h.t.Context(), lease, metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *heir) hear(ctx context.Context, client kubernetes.Interface, cm *corev1.ConfigMap) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, cm.Name+" "+cm.Data["state"])
	if cm.Data["state"] == "provoke" { // A handler should not write; this one does.
		_, h.wrote = client.CoreV1().Secrets("default").Create(ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "wrong"}}, metav1.CreateOptions{})
	}
}

// Reconcile implements reconcile.Reconciler.
func (h *heir) Reconcile(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.requests) == 0 {
		h.began = time.Now()
	}
	h.requests = append(h.requests, r.Name)
	return reconcile.Result{}, nil
}

// takeRequests returns the requests since the last call, and when the first of them began.
func (h *heir) takeRequests() ([]string, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := h.requests
	h.requests = nil
	return taken, h.began
}

func (h *heir) stats() reconcile.Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.controller.Stats()
}

func (h *heir) set(name, state string) {
	h.t.Helper()
	patch := fmt.Appendf(nil, `{"data":{"state":%q}}`, state)
	if _, err := h.admin.CoreV1().ConfigMaps("default").Patch(h.t.Context(), name, "application/merge-patch+json",
		patch, metav1.PatchOptions{}); err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
}

// acquired returns the time of the first write of the lease since the given time.
func (h *heir) acquired(after time.Time) time.Time {
	for _, e := range h.world.audit.Writes() {
		if e.Resource == "leases" && e.Verb == "update" && !e.Time.Before(after) {
			return e.Time
		}
	}
	h.t.Error("the lease was not taken")
	return time.Time{}
}

// TestFollowersControllersAreWarm checks a follower: its event handlers are called once for each change and cannot
// write, and nothing is reconciled. When it becomes the leader, its controller begins at that moment with the objects
// that changed last, and reconciles each object once.
func TestFollowersControllersAreWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := inherit(t, elected(), "a", "b", "c", "d")
		for _, name := range []string{"b", "c", "b"} {
			h.set(name, "new")
		}
		h.set("c", "provoke")
		if err := h.Ready(); err != nil {
			t.Errorf("the follower is not ready: %v", err)
		}
		if code, body := get(h.Manager, "/healthz/heir"); code != 200 ||
			body != "[+]heir: waiting for the leader lease\n" {
			t.Errorf("%d %s", code, body)
		}
		if s := h.stats(); s.Held != 4 || s.Queued != 0 || s.Syncs != 0 {
			t.Errorf("stats %+v", s)
		}
		if !errors.Is(h.wrote, leader.ErrLost) {
			t.Errorf("a handler's write in a process that follows: %v", h.wrote)
		}
		before := time.Now()
		h.bequeath("")
		time.Sleep(5 * time.Second)
		requests, began := h.takeRequests()
		if at := h.acquired(before); !began.Equal(at) {
			t.Errorf("the work began %v after the lease was taken", began.Sub(at))
		}
		if len(requests) < 4 || !slices.Equal(requests[:2], []string{"c", "b"}) {
			t.Errorf("reconciled %q, want what changed first", requests)
		}
		seen := map[string]int{}
		for _, name := range requests {
			if seen[name]++; seen[name] > 1 {
				t.Errorf("%s was reconciled again: %q", name, requests)
			}
		}
		h.set("a", "provoke") // the handler may write now
		if h.wrote != nil {
			t.Errorf("a handler's write in the process that leads: %v", h.wrote)
		}
		var heard []string
		for _, event := range h.heard {
			if strings.HasPrefix(event, "c ") {
				heard = append(heard, event)
			}
		}
		// The handler receives the old and the new state of an update.
		if want := []string{"c ", "c new", "c ", "c provoke", "c new"}; !slices.Equal(heard, want) {
			t.Errorf("heard %q, want %q", heard, want)
		}
		h.mustEnd()
	})
}

// A process that loses the lease becomes a warm follower again. Its next tenure also begins with the objects that
// changed in the meantime.
func TestSurvivorIsWarmAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := inherit(t, surviving(), "a", "b", "c")
		for range 3 {
			h.bequeath("")
			time.Sleep(time.Minute)
			if requests, _ := h.takeRequests(); len(requests) < 3 {
				t.Errorf("the tenure reconciled %q", requests)
			}
			h.bequeath("stranger")
			time.Sleep(time.Minute)
			if s := h.stats(); s.Held < 3 || s.Syncs > 0 {
				t.Errorf("a follower again: %+v", s)
			}
			h.set("b", time.Now().String())
			if err := h.Ready(); err != nil {
				t.Error(err)
			}
			before := time.Now()
			h.bequeath("")
			time.Sleep(5 * time.Second)
			requests, began := h.takeRequests()
			if at := h.acquired(before); requests[0] != "b" || !began.Equal(at) {
				t.Errorf("the next tenure began with %q, %v after the lease", requests, began.Sub(at))
			}
			h.bequeath("stranger")
			time.Sleep(time.Minute)
		}
		h.mustEnd()
	})
}

// A controller that only warms up can be removed, and releases its informer. A controller that is added warms up.
func TestRemoveWhileFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := inherit(t, elected(), "a")
		if n := len(h.Informers().Stats()["configmaps"].Handlers); n != 1 {
			t.Fatalf("%d handlers", n)
		}
		if err := h.Remove(t.Context(), "heir"); err != nil {
			t.Error(err)
		}
		if n := len(h.Informers().Stats()["configmaps"].Handlers); n != 0 {
			t.Errorf("%d handlers are left", n)
		}
		c := onConfigMaps(t, h.Manager, "late",
			func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
		synctest.Wait()
		if s := c.Stats(); s.Held == 0 {
			t.Errorf("stats %+v", s)
		}
		h.mustEnd()
	})
}

// A follower whose cache cannot be filled reports that, and fails if CacheSyncTimeout is set.
func TestWarmupThatCannotSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := inherit(t, elected())
		h.world.refuse(forbidPods)
		err := builder.ControllerManagedBy(h.Manager).For(&corev1.Pod{}).CacheSyncTimeout(5 * time.Minute).Complete(
			reconcile.Func[reconcile.Request](
				func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil },
			))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		if err := h.Ready(); err == nil || !strings.Contains(err.Error(), "cannot list pods") {
			t.Errorf("ready: %v", err)
		}
		err = <-h.done
		if err == nil || !strings.Contains(err.Error(), "pods did not sync within 5m0s") {
			t.Errorf("run: %v", err)
		}
	})
}
