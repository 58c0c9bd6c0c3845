package manager_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/leader"
)

// The environment of a rival: its name, and how far its wall clock is ahead.
const (
	rivalName  = "FLYBALL_TEST_RIVAL_NAME"
	rivalAhead = "FLYBALL_TEST_RIVAL_AHEAD"
)

// rivalTimes are short, so that a run takes seconds. A write that is sent in time arrives before another process can
// take the lease, unless the machine stands still for the two seconds in between.
var rivalTimes = leader.Options{
	LeaseDuration: 4 * time.Second, RenewDeadline: 2 * time.Second,
	RetryPeriod: 300 * time.Millisecond,
}

// TestProcessesOfOneLease is TestNoWriteIsAcceptedAfterTheLeasePassedOn with real processes. Two of them write one
// object, as often as they can while they lead, without checking their context. The leader is stopped by SIGSTOP and
// continued later, is killed, or is cut off by a network that holds its packets and delivers them at the end. The wall
// clocks may be hours apart. FLYBALL_RIVALS=200 runs more seeds.
func TestProcessesOfOneLease(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("FLYBALL_RIVALS"))
	if err != nil {
		seeds = len(rivalries)
	}
	var mu sync.Mutex
	var total tally
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed, " ", rivalries[seed%len(rivalries)].name), func(t *testing.T) {
				t.Parallel()
				got := runRivals(t, uint64(seed))
				mu.Lock()
				defer mu.Unlock()
				total.add(got)
			})
		}
	})
	t.Logf("%d runs: %d writes, %d handovers (the slowest without a leader for %v), %d late writes refused, %d "+
		"accepted",
		seeds, total.writes, total.handovers, total.slowest.Round(time.Millisecond), total.refused, total.late)
	if total.late > 0 {
		t.Errorf("%d late writes were accepted", total.late)
	}
}

// rivalries are the ways in which the leader fails. f makes it fail until the other process leads, and returns a
// function that ends the failure.
var rivalries = []struct {
	name  string
	ahead bool // the wall clocks are hours apart
	f     func(t *testing.T, r *rival) (end func())
}{
	{"stopped", false, func(t *testing.T, r *rival) func() {
		signalTo(t, r, syscall.SIGSTOP)
		return func() { signalTo(t, r, syscall.SIGCONT) }
	}},
	{"killed", false, func(t *testing.T, r *rival) func() {
		signalTo(t, r, syscall.SIGKILL)
		return func() {}
	}},
	{"cut off", false, func(_ *testing.T, r *rival) func() { return r.wire.hold() }},
	{"cut off on another clock", true, func(_ *testing.T, r *rival) func() { return r.wire.hold() }},
}

func signalTo(t *testing.T, r *rival, s syscall.Signal) {
	t.Helper()
	if err := r.process.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// rival is one of the processes.
type rival struct {
	process *exec.Cmd
	output  *bytes.Buffer
	wire    *wire
}

func runRivals(t *testing.T, seed uint64) tally {
	random := rand.New(rand.NewPCG(seed, 5))
	server, addr := serveRivals(t)
	way := rivalries[seed%uint64(len(rivalries))]
	rivals := map[string]*rival{}
	for _, name := range []string{"a", "b"} {
		ahead := time.Duration(0)
		if way.ahead {
			ahead = time.Duration(random.IntN(7200)-3600) * time.Second
		}
		rivals[name] = startRival(t, name, addr, ahead)
	}
	wrote := func(name string) (n int) {
		for _, e := range server.Audit().Writes() {
			if e.Name == "shared" && e.UserAgent == name {
				n++
			}
		}
		return n
	}
	leads, follows := "a", "b"
	await(t, rivals, "a leader that writes", func() bool {
		if wrote("b") > 3 {
			leads, follows = "b", "a"
		}
		return wrote(leads) > 3
	})
	time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
	end := way.f(t, rivals[leads])
	await(t, rivals, "the other one to write", func() bool { return wrote(follows) > 3 })
	end()
	time.Sleep(time.Second) // for requests that are still on their way
	result := judgeRivals(server.Audit().Entries(nil))
	for _, r := range rivals {
		_ = r.process.Process.Kill()
		_ = r.process.Wait()
		result.refused += strings.Count(r.output.String(), "refused by the fence")
	}
	return result
}

// serveRivals starts an API server with the object "shared", which the rivals write, and the object "tick", whose
// reconciles write it.
func serveRivals(t *testing.T) (*localapi.Server, string) {
	t.Helper()
	server, address := serveProcesses(t)
	for _, name := range []string{"tick", "shared"} {
		createConfigMap(t, kubernetes.NewForConfigOrDie(server.RESTConfig()), name)
	}
	return server, address
}

func startRival(t *testing.T, name, server string, ahead time.Duration) *rival {
	t.Helper()
	r := &rival{output: &bytes.Buffer{}, wire: newWire(t, server)}
	r.process = exec.Command(os.Args[0], "-test.run=^TestRivalChild$")
	r.process.Env = append(os.Environ(), childServer+"=http://"+r.wire.addr(), rivalName+"="+name, rivalAhead+"="+
		ahead.String(),
		"GOCOVERDIR="+t.TempDir())
	r.process.Stdout, r.process.Stderr = r.output, r.output
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.process.Process.Kill() })
	return r
}

func await(t *testing.T, rivals map[string]*rival, what string, happened func() bool) {
	t.Helper()
	for range 100 * 180 {
		if happened() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	for name, r := range rivals {
		_ = r.process.Process.Kill()
		_ = r.process.Wait() // its output is complete then
		t.Logf("%s:\n%s", name, r.output)
	}
	t.Fatalf("waited three minutes for %s", what)
}

// inOrder sorts requests by the order in which they took effect, which is the order of the versions that they made.
// Requests that made no version stay after those that were answered before them.
func inOrder(entries []audit.Entry) []audit.Entry {
	versions := make(map[int]uint64, len(entries))
	order := make([]int, len(entries))
	latest := uint64(0)
	for i, e := range entries {
		if version, err := strconv.ParseUint(e.ResourceVersion, 10, 64); err == nil && e.Mutates() {
			versions[i] = version
			latest = max(latest, version)
		} else {
			versions[i] = latest
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(versions[a], versions[b]) })
	sorted := make([]audit.Entry, len(entries))
	for i, from := range order {
		sorted[i] = entries[from]
	}
	return sorted
}

// judgeRivals reads the requests in the order in which they took effect. The holder of the lease is the process that
// wrote it last.
func judgeRivals(entries []audit.Entry) (result tally) {
	var holds string
	var renewed time.Time
	for _, e := range inOrder(entries) {
		switch {
		case e.Resource == "leases" && e.Mutates():
			if holds != "" && e.UserAgent != holds {
				result.handovers++
				result.slowest = max(result.slowest, e.Time.Sub(renewed))
			}
			holds, renewed = e.UserAgent, e.Time
		case e.Name != "shared" || e.Verb != "update" || holds == "":
		case e.Mutates() && e.UserAgent != holds:
			result.late++
		case e.Mutates():
			result.writes++
		case e.Code == http.StatusConflict && e.UserAgent != holds:
			result.refused++
		}
	}
	return result
}

// TestRivalChild is one of the processes of the test above.
func TestRivalChild(t *testing.T) {
	name := os.Getenv(rivalName)
	if name == "" {
		t.Skip("only as a child")
	}
	ahead, err := time.ParseDuration(os.Getenv(rivalAhead))
	if err != nil {
		t.Fatal(err)
	}
	wrong := &clock{}
	wrong.move(ahead, 1)
	config := &rest.Config{Host: os.Getenv(childServer), QPS: -1}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("User-Agent", name)
			if strings.Contains(r.URL.Path, "/leases") {
				return wrong.wrap(name, next).RoundTrip(r)
			}
			return next.RoundTrip(r)
		})
	})
	m, err := ctrl.NewManager(config, ctrl.Options{
		GracefulTimeout: time.Second, ServerTimeout: time.Minute,
		LeaderElection: manager.LeaderElection{
			Enabled: true, Name: "rivals", Identity: name, Survive: true,
			Options: rivalTimes,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	maps := clientset(m).CoreV1().ConfigMaps("default")
	err = ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(ctrl.ReconcilerFunc(
		func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			if r.Name != "tick" {
				return ctrl.Result{}, nil
			}
			ctx = context.WithoutCancel(ctx) // a careless reconciler ignores its context
			shared, err := maps.Get(ctx, "shared", metav1.GetOptions{})
			if err == nil {
				time.Sleep(10 * time.Millisecond) // time between the read and the write
				shared.Data = map[string]string{"by": name, "at": time.Now().String()}
				_, err = maps.Update(ctx, shared, metav1.UpdateOptions{})
			}
			if errors.Is(err, leader.ErrLost) {
				fmt.Println("refused by the fence")
			}
			return ctrl.Result{RequeueAfter: 10 * time.Millisecond}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("ends:", m.Run(ctrl.SetupSignalHandler()))
	os.Exit(1)
}

// wire is a network between a process and the API that can be cut. Packets that are sent while it is cut arrive when it
// is whole again.
type wire struct {
	listener net.Listener
	server   string

	mu sync.Mutex
	// open is closed while bytes pass.
	open chan struct{}
}

func newWire(t *testing.T, server string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: listener, server: server, open: make(chan struct{})}
	close(w.open)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go w.connect(conn)
		}
	}()
	return w
}

func (w *wire) addr() string { return w.listener.Addr().String() }

// hold stops all bytes until the function that it returns is called.
func (w *wire) hold() (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := make(chan struct{})
	w.open = open
	return func() { close(open) }
}

func (w *wire) connect(near net.Conn) {
	far, err := net.Dial("tcp", w.server)
	if err != nil {
		_ = near.Close()
		return
	}
	go w.copy(near, far)
	w.copy(far, near)
}

func (w *wire) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		w.mu.Lock()
		open := w.open
		w.mu.Unlock()
		<-open
		if _, writeErr := to.Write(buf[:n]); err != nil || writeErr != nil {
			return
		}
	}
}
