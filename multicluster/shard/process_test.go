package shard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/shard"
	"github.com/flyball-dev/flyball/reconcile"
)

// The environment variables of a child process: the server's address, and the replica's name.
const (
	childServer = "FLYBALL_TEST_SHARD_SERVER"
	childName   = "FLYBALL_TEST_SHARD_NAME"
)

// processTimes are short, so that a run takes seconds. A write that was sent before RenewDeadline arrives before the
// lease has a new holder, unless the machine stands still for the two seconds until LeaseDuration.
var processTimes = leader.Options{
	LeaseDuration: 4 * time.Second, RenewDeadline: 2 * time.Second,
	RetryPeriod: 300 * time.Millisecond,
}

// processClusters are all on one server, so that its resource versions order all changes of leases and objects.
var processClusters = []string{"eu/a", "eu/b", "us/c", "us/d"}

// TestProcessesOfOneFleet is TestNoTwoWritersInAFleet with three real processes. One after the other is stopped
// (SIGSTOP) and continued, killed (SIGKILL) and started again, or ended (SIGTERM). FLYBALL_FLEET_PROCESSES=50 runs more
// seeds.
func TestProcessesOfOneFleet(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("FLYBALL_FLEET_PROCESSES"))
	if err != nil {
		seeds = 1
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			runProcesses(t, seed)
		})
	}
}

// holderHistory has the holders of each cluster, in order, with the version at which each one took over.
type holderHistory struct {
	mu     sync.Mutex
	states map[string][]handover
}

type handover struct {
	version uint64
	holder  string
}

func (r *holderHistory) note(l *coordinationv1.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	version, _ := strconv.ParseUint(l.ResourceVersion, 10, 64)
	holder, _, _ := strings.Cut(*l.Spec.HolderIdentity, "#")
	name := l.Annotations[shard.NameAnnotation]
	r.states[name] = append(r.states[name], handover{version, holder})
}

// at returns the holder of a cluster at a version; 0 means now.
func (r *holderHistory) at(cluster string, version uint64) (holder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.states[cluster] {
		if version != 0 && s.version > version {
			break
		}
		holder = s.holder
	}
	return holder
}

func runProcesses(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 3))
	server, address := serveProcesses(t)
	held := follow(t, server)
	replicas := map[string]*process{}
	start := func(name string) {
		before := requestsOf(server, name)
		replicas[name] = startProcess(t, name, address)
		await(t, replicas, name+" to start", func() bool { return requestsOf(server, name) > before })
	}
	for _, name := range []string{"a", "b", "c"} {
		start(name)
	}
	await(t, replicas, "all clusters to be shared", func() bool {
		holders := map[string]bool{}
		for _, c := range processClusters {
			holders[held.at(c, 0)] = true
		}
		return !holders[""]
	})
	for _, way := range random.Perm(3) {
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		// Only a replica that holds a cluster fails.
		name := held.at(processClusters[random.IntN(len(processClusters))], 0)
		r := replicas[name]
		if r == nil {
			continue
		}
		signal(t, r, []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL, syscall.SIGTERM}[way])
		await(t, replicas, "the others to write what "+name+" did", func() bool {
			last := lastWriters(server)
			for _, c := range processClusters {
				if holder := held.at(c, 0); holder == name || holder == "" || last[sharedBy(c)] != holder {
					return false
				}
			}
			return true
		})
		if way == 0 {
			signal(t, r, syscall.SIGCONT)
			time.Sleep(time.Second)
		} else {
			_ = r.cmd.Wait()
			start(name)
		}
	}
	await(t, replicas, "some writes", func() bool {
		return len(
			server.Audit().Entries(
				func(e audit.Entry) bool { return e.Mutates() && strings.HasPrefix(e.Name, "shared-") },
			),
		) >= enoughWrites
	})
	time.Sleep(time.Second)
	for _, r := range replicas {
		signal(t, r, syscall.SIGTERM)
		if err := r.cmd.Wait(); err != nil {
			t.Errorf("%v:\n%s", err, r.output)
		}
	}
	judgeProcesses(t, server, held)
}

// enoughWrites is the fewest writes with which a run is meaningful.
const enoughWrites = 20

func requestsOf(server *localapi.Server, name string) int {
	return len(server.Audit().Entries(func(e audit.Entry) bool { return e.UserAgent == name }))
}

// lastWriters returns who wrote to each object last.
func lastWriters(server *localapi.Server) map[string]string {
	last := map[string]string{}
	for _, e := range server.Audit().Writes() {
		last[e.Name] = e.UserAgent
	}
	return last
}

// judgeProcesses compares every accepted write with the holder of the cluster at that version.
func judgeProcesses(t *testing.T, server *localapi.Server, held *holderHistory) {
	t.Helper()
	writes, refused, moves := 0, 0, 0
	for _, e := range server.Audit().Entries(nil) {
		cluster, ours := strings.CutPrefix(e.Name, "shared-")
		if !ours || e.Verb != "update" {
			continue
		}
		if e.Code == http.StatusConflict {
			refused++
			continue
		}
		if !e.Mutates() {
			continue
		}
		writes++
		version, err := strconv.ParseUint(e.ResourceVersion, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		cluster = strings.ReplaceAll(cluster, "-", "/")
		if holder := held.at(cluster, version); holder != e.UserAgent {
			t.Errorf("%s wrote to %s at version %d, when it was held by %q: %v", e.UserAgent, cluster, version, holder,
				held.states[cluster])
		}
	}
	for _, states := range held.states {
		moves += len(states)
	}
	t.Logf("%d writes accepted, %d refused by the server, %d changes of leases", writes, refused, moves)
	if writes < enoughWrites {
		t.Error("want more writes")
	}
}

// follow records every state of the clusters' leases.
func follow(t *testing.T, server *localapi.Server) *holderHistory {
	t.Helper()
	held := &holderHistory{states: map[string][]handover{}}
	client := kubernetes.NewForConfigOrDie(server.RESTConfig())
	watch, err := client.CoordinationV1().Leases("kube-system").Watch(t.Context(),
		metav1.ListOptions{LabelSelector: shard.KindLabel + "=cluster"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	go func() {
		for e := range watch.ResultChan() {
			if l, ok := e.Object.(*coordinationv1.Lease); ok {
				held.note(l)
			}
		}
	}()
	return held
}

// serveProcesses starts an API server that other processes can reach.
func serveProcesses(t *testing.T) (server *localapi.Server, address string) {
	t.Helper()
	server, err := localapi.New(localapi.Options{Audit: &audit.Log{}, NoKubernetesService: true})
	if err != nil {
		t.Fatal(err)
	}
	objects := []string{"tick"}
	for _, c := range processClusters {
		objects = append(objects, sharedBy(c))
	}
	for _, name := range objects {
		if err := server.Seed(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		<-served
		_ = server.Close()
	})
	return server, listener.Addr().String()
}

func sharedBy(cluster string) string { return "shared-" + strings.ReplaceAll(cluster, "/", "-") }

// process is a replica in a process of its own.
type process struct {
	cmd    *exec.Cmd
	output *bytes.Buffer
}

func startProcess(t *testing.T, name, server string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^TestReplicaChild$"), output: &bytes.Buffer{}}
	p.cmd.Env = append(os.Environ(), childServer+"=http://"+server, childName+"="+name, "GOCOVERDIR="+t.TempDir())
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

func signal(t *testing.T, p *process, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

func await(t *testing.T, replicas map[string]*process, what string, happened func() bool) {
	t.Helper()
	for range 100 * 180 {
		if happened() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	for name, r := range replicas {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait() // its output is complete then
		t.Logf("%s:\n%s", name, r.output)
	}
	t.Fatalf("waited three minutes for %s", what)
}

// TestReplicaChild is the child process of the tests above.
func TestReplicaChild(t *testing.T) {
	name := os.Getenv(childName)
	if name == "" {
		t.Skip("only as a child")
	}
	ctx, _ := manager.SetupSignals(t.Context()) // before the test can send a signal to this process
	config := &rest.Config{Host: os.Getenv(childServer), QPS: -1}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("User-Agent", name)
			return next.RoundTrip(r)
		})
	})
	owner, err := shard.New(config, shard.Options{Identity: name, Options: processTimes})
	if err != nil {
		t.Fatal(err)
	}
	local, err := manager.New(config, manager.Options{GracefulTimeout: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var all []multicluster.Announcement
	for _, cluster := range processClusters {
		all = append(all, multicluster.Announcement{Name: cluster, Config: config})
	}
	fleet, err := multicluster.New(local,
		multicluster.Options{Owner: owner, Providers: []multicluster.Provider{announced(all)}})
	if err != nil {
		t.Fatal(err)
	}
	err = multicluster.ControllerManagedBy(fleet).For(
		&corev1.ConfigMap{},
	).Complete(reconcile.Func[multicluster.Request](
		func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
			if r.Name != "tick" {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{RequeueAfter: 20 * time.Millisecond}, writeShared(ctx, fleet, r.Cluster, name)
		}))
	if err != nil {
		t.Fatal(err)
	}
	if err := local.Run(ctx); err != nil {
		fmt.Println("run:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// writeShared reads, waits, and writes. It is careless: its context does not end.
func writeShared(ctx context.Context, fleet *multicluster.Manager, name, by string) error {
	cluster, err := fleet.GetCluster(ctx, name)
	if err != nil {
		return nil //nolint:nilerr // it has gone
	}
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	maps := client.CoreV1().ConfigMaps("default")
	shared, err := maps.Get(ctx, sharedBy(name), metav1.GetOptions{})
	if err != nil {
		return err
	}
	time.Sleep(5 * time.Millisecond)
	shared.Data = map[string]string{"by": by, "at": time.Now().String()}
	_, err = maps.Update(ctx, shared, metav1.UpdateOptions{})
	if errors.Is(err, multicluster.ErrNotOwner) || errors.Is(err, multicluster.ErrClusterGone) {
		fmt.Println("refused by the fence")
		return nil
	}
	return err
}
