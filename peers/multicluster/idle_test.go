package multicluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	peer "sigs.k8s.io/controller-runtime"
	peercluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	peermetrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	peerreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	"sigs.k8s.io/multicluster-runtime/pkg/clusters"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcruntime "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// role is what this binary runs when a test has started it: the servers, or one of the systems.
const role = "FLYBALL_ROLE"

// objects is the number of ConfigMaps in each cluster.
const objects = 10

// systems join the clusters, and call reconciled at the first reconcile of each object.
var systems = map[string]func(ctx context.Context, hub string, urls []string, reconciled func()) error{
	"Flyball": runFlyball, "multicluster-runtime": runPeer,
}

func TestMain(m *testing.M) {
	what := os.Getenv(role)
	if what == "" {
		m.Run()
		return
	}
	klog.SetLogger(klog.Logger{})
	peer.SetLogger(klog.Logger{})
	n, err := strconv.Atoi(os.Getenv("FLYBALL_CLUSTERS"))
	if err == nil {
		if what == "servers" {
			err = beServers(n)
		} else {
			err = beSystem(what, os.Getenv("FLYBALL_URL"), n)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestIdleClusters measures what an idle cluster costs. Both systems join the clusters, each of which has ten objects
// and one controller, and then have nothing to do. The servers run in a process of their own. FLYBALL_CLUSTERS is the
// number of clusters.
func TestIdleClusters(t *testing.T) {
	n := "20"
	if asked := os.Getenv("FLYBALL_CLUSTERS"); asked != "" {
		n = asked
	}
	env := append(os.Environ(), "FLYBALL_CLUSTERS="+n)
	servers := exec.Command(os.Args[0])
	servers.Env, servers.Stderr = append(env, role+"=servers"), os.Stderr
	out, err := servers.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := servers.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = servers.Process.Kill()
		_ = servers.Wait()
	}()
	var url string
	if _, err := fmt.Fscanln(out, &url); err != nil {
		t.Fatal(err)
	}
	found := map[string]footprint{}
	for _, system := range []string{"multicluster-runtime", "Flyball"} {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env, process.Stderr = append(env, role+"="+system, "FLYBALL_URL="+url), os.Stderr
		answer, err := process.Output()
		if err != nil {
			t.Fatalf("%s: %v", system, err)
		}
		var f footprint
		if err := json.Unmarshal(answer, &f); err != nil {
			t.Fatal(err)
		}
		found[system] = f
		fmt.Printf("| %s clusters | %s | %.1f KB | %.1f KB | %.1f | %.1f s | %.1f s |\n", n, system, f.Heap/1000,
			f.Stacks/1000, f.Goroutines, f.Joined.Seconds(), f.CPU.Seconds())
	}
	ours, theirs := found["Flyball"], found["multicluster-runtime"]
	if ours.Heap+ours.Stacks > theirs.Heap+theirs.Stacks || ours.Goroutines > theirs.Goroutines {
		t.Errorf("an idle cluster costs %+v, and multicluster-runtime %+v", ours, theirs)
	}
}

// footprint is the cost of one cluster, and the time to join all.
type footprint struct {
	Heap, Stacks, Goroutines float64 // bytes, bytes and goroutines of one cluster
	Joined, CPU              time.Duration
}

// beServers serves a hub and n clusters, below one address, which it prints.
func beServers(n int) error {
	mux := http.NewServeMux()
	for i := range n + 1 {
		s, err := localapi.New(localapi.Options{NoKubernetesService: true})
		if err != nil {
			return err
		}
		var all []k8sruntime.Object
		for j := range objects {
			all = append(all,
				&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("object-", j)},
					Data:       map[string]string{"text": strings.Repeat("x", 200)},
				})
		}
		if err := s.Seed(context.Background(), all...); err != nil {
			return err
		}
		mux.Handle(fmt.Sprintf("/c-%d/", i), http.StripPrefix(fmt.Sprintf("/c-%d", i), s.Handler()))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	return http.Serve(l, mux)
}

// beSystem joins the clusters, rests, and prints its footprint.
func beSystem(name, url string, n int) error {
	var urls []string
	for i := range n {
		urls = append(urls, fmt.Sprintf("%s/c-%d", url, i))
	}
	var heard atomic.Int64
	all := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	heap, stacks, goroutines := now()
	began := time.Now()
	go func() {
		ended <- systems[name](ctx, fmt.Sprintf("%s/c-%d", url, n), urls, func() {
			if heard.Add(1) == int64(n*objects) {
				close(all)
			}
		})
	}()
	select {
	case <-all:
	case err := <-ended:
		return fmt.Errorf("%s ended: %w", name, err)
	case <-time.After(10 * time.Minute):
		return fmt.Errorf("%s: %d of %d objects after ten minutes", name, heard.Load(), n*objects)
	}
	f := footprint{Joined: time.Since(began), CPU: used()}
	time.Sleep(5 * time.Second) // What is left of the work ends.
	heap1, stacks1, goroutines1 := now()
	per := func(after, before uint64) float64 { return (float64(after) - float64(before)) / float64(n) }
	f.Heap, f.Stacks, f.Goroutines = per(heap1, heap), per(stacks1, stacks), per(goroutines1, goroutines)
	stop()
	if err := <-ended; err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

// now returns the bytes in use on the heap and on stacks, and the number of goroutines.
func now() (heap, stacks, goroutines uint64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.StackInuse, uint64(runtime.NumGoroutine())
}

// used returns the processor time of this process.
func used() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func runFlyball(ctx context.Context, hub string, urls []string, reconciled func()) error {
	local, err := manager.New(&rest.Config{Host: hub}, manager.Options{})
	if err != nil {
		return err
	}
	fleet, err := multicluster.New(local, multicluster.Options{Providers: []multicluster.Provider{announced(urls)}})
	if err != nil {
		return err
	}
	err = multicluster.ControllerManagedBy(fleet).For(
		&corev1.ConfigMap{},
	).Complete(reconcile.Func[multicluster.Request](
		func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
			c, err := fleet.GetCluster(ctx, r.Cluster)
			if err != nil {
				return reconcile.Result{}, err
			}
			if err := c.Get(ctx, r.NamespacedName, &corev1.ConfigMap{}); err != nil {
				return reconcile.Result{}, err
			}
			reconciled()
			return reconcile.Result{}, nil
		}))
	if err != nil {
		return err
	}
	return local.Run(ctx)
}

// announced returns announcements of clusters at these addresses.
type announced []string

func (announced) Name() string { return "announced" }

func (announced) Health() error { return nil }

func (a announced) Run(ctx context.Context, fleet multicluster.Fleet) error {
	for i, url := range a {
		if err := fleet.Join(
			multicluster.Announcement{Name: fmt.Sprint("c-", i), Config: &rest.Config{Host: url}},
		); err != nil {
			return err
		}
	}
	fleet.Synced()
	<-ctx.Done()
	return nil
}

func runPeer(ctx context.Context, hub string, urls []string, reconciled func()) error {
	p := &peerProvider{Clusters: clusters.New[peercluster.Cluster](), urls: urls}
	mgr, err := mcmanager.New(&rest.Config{Host: hub}, p, peer.Options{Metrics: peermetrics.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	err = mcbuilder.ControllerManagedBy(mgr).Named("idle").For(&corev1.ConfigMap{}).Complete(mcreconcile.Func(
		func(ctx context.Context, r mcreconcile.Request) (peerreconcile.Result, error) {
			c, err := mgr.GetCluster(ctx, r.ClusterName)
			if err != nil {
				return peerreconcile.Result{}, err
			}
			if err := c.GetClient().Get(ctx, r.NamespacedName, &corev1.ConfigMap{}); err != nil {
				return peerreconcile.Result{}, err
			}
			reconciled()
			return peerreconcile.Result{}, nil
		}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// peerProvider adds clusters, sixteen at a time.
type peerProvider struct {
	clusters.Clusters[peercluster.Cluster]
	urls []string
}

// Start implements multicluster.ProviderRunnable.
func (p *peerProvider) Start(ctx context.Context, aware mcruntime.Aware) error {
	var adding errgroup.Group
	adding.SetLimit(16)
	for i, url := range p.urls {
		adding.Go(func() error {
			c, err := peercluster.New(&rest.Config{Host: url})
			if err != nil {
				return err
			}
			return p.Add(ctx, mcruntime.ClusterName(fmt.Sprint("c-", i)), c, aware)
		})
	}
	if err := adding.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	<-ctx.Done()
	return nil
}
