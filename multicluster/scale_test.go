package multicluster_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"go.uber.org/goleak"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// size returns a small default, unless the environment asks for the full size.
func size(t testing.TB, variable string, few int) int {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		return few
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// newPlainServer makes a cluster's server with one config map and no record of requests.
func newPlainServer(t testing.TB, g gate.Gate) *localapi.Server {
	t.Helper()
	s, err := localapi.New(localapi.Options{NoKubernetesService: true, Gate: g})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Seed(t.Context(), configMap("x")); err != nil {
		t.Fatal(err)
	}
	return s
}

// clusterCounter counts the clusters whose config map was reconciled.
type clusterCounter struct {
	mu   sync.Mutex
	seen map[string]bool
	want int
	all  chan struct{} // closed when want are seen
}

func newClusterCounter(want int) *clusterCounter {
	return &clusterCounter{seen: map[string]bool{}, want: want, all: make(chan struct{})}
}

func (c *clusterCounter) Reconcile(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
	cluster, err := clusterOf(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	var cm corev1.ConfigMap
	if err := cluster.Get(ctx, r.NamespacedName, &cm); err != nil {
		return reconcile.Result{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.seen[r.Cluster] {
		c.seen[r.Cluster] = true
		if len(c.seen) == c.want {
			close(c.all)
		}
	}
	return reconcile.Result{}, nil
}

func (c *clusterCounter) wait(t testing.TB, patience time.Duration) {
	t.Helper()
	select {
	case <-c.all:
	case <-time.After(patience):
		c.mu.Lock()
		defer c.mu.Unlock()
		t.Fatalf("%d of %d clusters were reconciled within %v", len(c.seen), c.want, patience)
	}
}

// memory returns the size of heap and stacks, and the number of goroutines.
func memory() (bytes uint64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse, runtime.NumGoroutine()
}

// Clusters are reconciled soon after they were announced, even if a tenth of them is dead or slow. The full size is
// 500; the default is small enough for every run.
func TestManyClustersJoin(t *testing.T) {
	n := size(t, "FLYBALL_FLEET_CLUSTERS", 40)
	healthy := joinMany(t, n, 0)
	mixed := joinMany(t, n, n/10)
	t.Logf("%d clusters: reconciled after %v, with a tenth dead or slow after %v", n, healthy, mixed)
	if bound := 10 * time.Second; mixed > bound && os.Getenv("FLYBALL_FLEET_CLUSTERS") != "" {
		t.Errorf("it took %v, more than %v", mixed, bound)
	}
	// The bounds are loose, because the machine may be busy. But clusters that waited ten seconds for each dead one
	// would exceed them.
	if mixed > 3*healthy+20*time.Second {
		t.Errorf("with dead clusters it took %v, without %v", mixed, healthy)
	}
}

// joinMany announces n clusters, of which the first ones, as many as faulty, answer late or never. It waits until the
// others are reconciled.
func joinMany(t *testing.T, n, faulty int) time.Duration {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	c := newClusterCounter(n - faulty)
	w := newWorld(t, multicluster.Options{}, manager.Options{})
	w.complete(t, c)
	w.start(t)
	defer w.localSite.Close()
	defer w.end(t)
	servers := make([]*localapi.Server, n)
	for i := range servers {
		servers[i] = newPlainServer(t, faultyGate(i, faulty))
		defer servers[i].Close()
	}
	before, goroutines := memory()
	began := time.Now()
	for i, s := range servers {
		if err := w.fleet.Join(
			multicluster.Announcement{Name: fmt.Sprint("c-", i), Config: s.RESTConfig()},
		); err != nil {
			t.Fatal(err)
		}
	}
	c.wait(t, 3*time.Minute)
	took := time.Since(began)
	after, more := memory()
	t.Logf("%d clusters, %d faulty: %v, %d KiB and %.1f goroutines a cluster, the server's part included", n, faulty,
		took, (after-before)/1024/uint64(n), float64(more-goroutines)/float64(n))
	if path := os.Getenv("FLYBALL_FLEET_HEAP"); path != "" {
		writeHeap(t, path)
	}
	return took
}

// faultyGate returns the gate of cluster i. Of the faulty ones, which come first, those with an even number never
// answer, and the others take 20 seconds for each answer.
func faultyGate(i, faulty int) gate.Gate {
	if i >= faulty {
		return nil
	}
	return gate.Funcs{OnRequest: func(ctx context.Context, r *gate.Request) gate.Verdict {
		patience := time.Hour
		if i%2 == 1 {
			patience = 20 * time.Second
		}
		slow := time.NewTimer(patience)
		defer slow.Stop()
		select {
		case <-slow.C:
			return gate.Verdict{}
		case <-ctx.Done():
			return gate.Verdict{Action: gate.Drop}
		}
	}}
}

// Clusters join, are worked on and leave, again and again. Goroutines and memory stay the same. The full size is 50
// rounds of 100 clusters.
func TestJoiningAndLeavingDoesNotLeak(t *testing.T) {
	rounds, n := size(t, "FLYBALL_FLEET_ROUNDS", 4), size(t, "FLYBALL_FLEET_CLUSTERS", 10)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	servers := make([]*localapi.Server, n)
	for i := range servers {
		servers[i] = newPlainServer(t, nil)
		defer servers[i].Close()
	}
	var c *clusterCounter
	w := newWorld(t, multicluster.Options{}, manager.Options{})
	w.complete(t,
		reconcile.Func[multicluster.Request](func(ctx context.Context,
			r multicluster.Request,
		) (reconcile.Result, error) {
			if _, err := c.Reconcile(ctx, r); err != nil {
				return reconcile.Result{}, err
			}
			return reconcile.Result{RequeueAfter: time.Hour}, nil
		}))
	w.start(t)
	defer w.localSite.Close()
	defer w.end(t)
	var heap, last uint64
	var goroutines, running int
	for round := range rounds {
		c = newClusterCounter(n)
		for i, s := range servers {
			if err := w.fleet.Join(
				multicluster.Announcement{Name: fmt.Sprint("c-", i), Config: s.RESTConfig()},
			); err != nil {
				t.Fatal(err)
			}
		}
		c.wait(t, 3*time.Minute)
		for i := range servers {
			w.fleet.Leave(fmt.Sprint("c-", i))
		}
		for len(w.Clusters()) > 0 {
			runtime.Gosched()
		}
		w.logs.forget()
		if last, running = memory(); round == min(2, rounds-2) { // Pools and maps have grown to their size by then.
			heap, goroutines = last, running
		}
	}
	t.Logf("%d rounds of %d clusters: %d KiB and %d goroutines after the first ones, %d KiB and %d at the end", rounds,
		n, heap/1024, goroutines, last/1024, running)
	if running > goroutines+5 {
		t.Errorf("%d goroutines at the end, %d before", running, goroutines)
	}
	if last > heap+heap/10+512<<10 {
		t.Errorf("%d KiB at the end, %d before", last/1024, heap/1024)
	}
}
