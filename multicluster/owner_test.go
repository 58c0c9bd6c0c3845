package multicluster_test

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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// fakeOwner is an owner that the test controls.
type fakeOwner struct {
	mu      sync.Mutex
	grants  map[string]chan *fakeTenure // by cluster; capacity 1
	fails   int                         // how often Acquire fails first
	running bool
	calls   []string // "leave" and "release", in order
}

func (g *fakeOwner) record(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, what)
}

func (g *fakeOwner) Leave() {
	time.Sleep(time.Millisecond) // Clusters wait for it.
	g.record("leave")
}

func newFakeOwner() *fakeOwner { return &fakeOwner{grants: map[string]chan *fakeTenure{}} }

func (g *fakeOwner) Run(ctx context.Context) error {
	g.mu.Lock()
	g.running = true
	g.mu.Unlock()
	<-ctx.Done()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = false
	return nil
}

func (g *fakeOwner) grantsFor(name string) chan *fakeTenure {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.grants[name] == nil {
		g.grants[name] = make(chan *fakeTenure, 1)
	}
	return g.grants[name]
}

func (g *fakeOwner) Acquire(ctx context.Context, c multicluster.ClusterInfo,
	report func(string),
) (multicluster.Tenure, error) {
	g.mu.Lock()
	fails := g.fails > 0
	g.fails--
	g.mu.Unlock()
	if fails {
		return nil, errors.New("the registry is away")
	}
	report("served by replica-2")
	select {
	case l := <-g.grantsFor(c.Name):
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// grant allows this replica to serve a cluster.
func (g *fakeOwner) grant(name string) *fakeTenure {
	l := &fakeTenure{owner: g, ending: make(chan struct{}), lost: make(chan struct{}), released: make(chan error, 1)}
	g.grantsFor(name) <- l
	return l
}

type fakeTenure struct {
	owner        *fakeOwner
	ending, lost chan struct{} // closed by the test
	released     chan error    // gets the error that Release is called with; capacity 1

	mu  sync.Mutex
	err error
}

func (l *fakeTenure) Ending() <-chan struct{} { return l.ending }
func (l *fakeTenure) Lost() <-chan struct{}   { return l.lost }

func (l *fakeTenure) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *fakeTenure) expire(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *fakeTenure) Release(_ context.Context, stuck error) {
	l.owner.record("release")
	l.released <- stuck
}

// releaseError returns the error that Release was called with, if it was called.
func (l *fakeTenure) releaseError() string {
	synctest.Wait()
	select {
	case err := <-l.released:
		return fmt.Sprint(err)
	default:
		return "not released"
	}
}

// A cluster is served while this replica may serve it. It drains before its lease is released, and another replica may
// serve it then.
func TestReleaseComesAfterTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newFakeOwner()
		owner.fails = 1
		w := newWorld(t, multicluster.Options{Owner: owner}, manager.Options{})
		r := &recorder{then: func(ctx context.Context, _ multicluster.Request) (reconcile.Result, error) {
			c, err := clusterOf(ctx)
			if err != nil {
				return reconcile.Result{}, err
			}
			time.Sleep(5 * time.Second)
			return reconcile.Result{}, c.Create(ctx, configMap(fmt.Sprint("written-", time.Now().Unix())))
		}}
		b := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).WithEventFilter(named("x"))
		if err := b.Complete(r); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		s := newSite(t)
		s.create(t, "x")
		w.join(t, "eu", s)
		synctest.Wait()
		if status, err := w.Status("eu"); err != nil || !strings.Contains(status.Reason, "the registry is away") {
			t.Errorf("%+v, %v", status, err)
		}
		time.Sleep(5 * time.Second)
		if status, err := w.Status("eu"); err != nil || status.State != multicluster.Waiting ||
			status.Reason != "served by replica-2" {
			t.Errorf("%+v, %v", status, err)
		}
		if _, err := w.GetCluster(t.Context(), "eu"); !errors.Is(err, multicluster.ErrClusterNotLive) ||
			!strings.Contains(err.Error(), "served by replica-2") {
			t.Errorf("cluster of another: %v", err)
		}
		if n := len(s.log.Entries(nil)); n != 1 {
			t.Errorf("a cluster that others serve was asked %d times", n-1)
		}
		l := owner.grant("eu")
		r.want(t, "granted", "cluster://eu/default/x")
		close(l.ending)
		w.wantStates(t, "handing over", "eu Draining")
		if got := l.releaseError(); got != "not released" {
			t.Errorf("with a reconcile in flight: %s", got)
		}
		time.Sleep(5 * time.Second)
		w.wantStates(t, "handed over", "eu Waiting")
		if got := l.releaseError(); got != "<nil>" {
			t.Errorf("drained: %s", got)
		}
		if n := len(s.writes()); n != 2 {
			t.Errorf("%d writes, want that of the drain, too", n)
		}
		l = owner.grant("eu") // again
		r.want(t, "granted again", "cluster://eu/default/x")
		time.Sleep(10 * time.Second)
		w.end(t)
		if got := l.releaseError(); got != "<nil>" {
			t.Errorf("at the end of the process: %s", got)
		}
		if owner.running {
			t.Error("the owner outlives its process")
		}
		// Leave comes before anything drains
		if want := []string{"release", "leave", "release"}; !slices.Equal(owner.calls, want) {
			t.Errorf("the owner got the calls %q, want %q", owner.calls, want)
		}
	})
}

// Source: multicluster-runtime v0.24.1, its sharded coordinator: two writers overlap. Here a lost tenure cancels the
// reconciles in flight, and stops all writes: those with contexts that are not the reconcile's, and those of the
// reconcile to other clusters.
func TestNoWriteWithoutTenure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newFakeOwner()
		w := newWorld(t, multicluster.Options{Owner: owner}, manager.Options{})
		var refused []error
		r := &recorder{then: func(ctx context.Context, _ multicluster.Request) (reconcile.Result, error) {
			c, err := clusterOf(ctx)
			if err != nil {
				return reconcile.Result{}, err
			}
			time.Sleep(5 * time.Second)
			clients, err := kubernetes.NewForConfig(c.Config())
			if err != nil {
				return reconcile.Result{}, err
			}
			local, err := w.GetCluster(ctx, multicluster.LocalCluster)
			if err != nil {
				return reconcile.Result{}, err
			}
			refused = append(refused, c.Create(ctx, configMap("by-client")),
				c.Create(context.Background(), configMap("by-other-context")),
				clients.CoreV1().ConfigMaps("default").Delete(context.Background(), "x", deleteNow),
				local.Create(ctx, configMap("in-the-local-cluster")))
			refused = append(refused, c.APIReader().Get(ctx, keyOf("x"), &corev1.ConfigMap{}))
			<-ctx.Done()
			return reconcile.Result{}, ctx.Err()
		}}
		b := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{})
		if err := b.Complete(r); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		s := newSite(t)
		s.create(t, "x")
		w.join(t, "eu", s)
		l := owner.grant("eu")
		r.want(t, "granted", "cluster://eu/default/x")
		l.expire(errors.New("the lease may have run out"))
		s.create(t, "y")
		time.Sleep(10 * time.Second)
		r.want(t, "a request while it is in doubt")
		if len(refused) != 5 {
			t.Fatalf("refused: %v", refused)
		}
		for i, err := range refused[:4] {
			if !errors.Is(err, multicluster.ErrNotOwner) {
				t.Errorf("write %d: %v", i, err)
			}
		}
		if refused[4] != nil {
			t.Errorf("a read: %v", refused[4])
		}
		close(l.lost)
		synctest.Wait()
		if got := l.releaseError(); got != "<nil>" {
			t.Errorf("lost: %s", got)
		}
		w.wantStates(t, "lost", "eu Waiting")
		if n, localSite := len(s.writes()), len(w.localSite.writes()); n != 2 || localSite != 0 {
			t.Errorf("%d writes, %d in the local cluster", n, localSite)
		}
	})
}

// Release gets an error if a reconcile does not return: the lease must expire by itself.
func TestReleaseGetsStuckWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newFakeOwner()
		w := newWorld(t, multicluster.Options{Owner: owner}, manager.Options{})
		blocked := make(chan struct{})
		r := &recorder{then: func(context.Context, multicluster.Request) (reconcile.Result, error) {
			<-blocked
			return reconcile.Result{}, nil
		}}
		w.complete(t, r)
		w.start(t)
		s := newSite(t)
		s.create(t, "x")
		w.join(t, "eu", s)
		l := owner.grant("eu")
		synctest.Wait()
		close(l.ending)
		time.Sleep(5 * time.Second)
		close(l.lost) // while it drains
		time.Sleep(5 * time.Second)
		if got := l.releaseError(); !strings.Contains(got, "1 reconciles did not return") {
			t.Errorf("released with %q", got)
		}
		close(blocked)
		synctest.Wait()
	})
}
