package manager_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/leader"
)

const childRounds = "FLYBALL_TEST_CHILD_ROUNDS"

// TestRoundsOfStartAndStop starts and stops a manager a hundred times, at random moments and in real time, in a process
// of its own. No goroutine is left and none panics. Each stop takes no longer than the work in flight. No goroutine
// spins meanwhile: the CPU time of all the stops is a small part of the time that they took.
func TestRoundsOfStartAndStop(t *testing.T) {
	t.Parallel()
	process := exec.Command(os.Args[0], "-test.run=^TestRoundsChild$", "-test.v")
	process.Env = append(os.Environ(), childRounds+"=100", "GOCOVERDIR="+t.TempDir())
	output, err := process.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "100 rounds") {
		t.Fatalf("%v:\n%s", err, output)
	}
	for line := range strings.SplitSeq(string(output), "\n") {
		if strings.Contains(line, "100 rounds") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// The work in flight at the stop, and the deadline for it.
const (
	roundWork  = 100 * time.Millisecond
	roundGrace = 30 * time.Second
)

// TestRoundsChild is the process of the test above.
func TestRoundsChild(t *testing.T) {
	if os.Getenv(childRounds) == "" {
		t.Skip("only as a child")
	}
	server, err := localapi.New(localapi.Options{NoKubernetesService: true})
	if err != nil {
		t.Fatal(err)
	}
	admin := kubernetes.NewForConfigOrDie(server.RESTConfig())
	work := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "work"}}
	if _, err := admin.CoreV1().ConfigMaps("default").Create(t.Context(), work, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var wall, busy, slowest time.Duration
	goroutines := 0
	const rounds = 100
	for i := range rounds {
		took, used := startAndStop(t, server, time.Duration(random.IntN(150))*time.Millisecond, i)
		wall, busy, slowest = wall+took, busy+used, max(slowest, took)
		if i == 0 {
			goroutines = settled(runtime.NumGoroutine())
		}
	}
	if left := settled(goroutines); left > goroutines {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines after the first round, %d after the last:\n%s", goroutines, left,
			buf[:runtime.Stack(buf, true)])
	}
	fmt.Printf("%d rounds: stopping took %v, the slowest %v, and %v of CPU time\n",
		rounds, wall.Round(time.Millisecond), slowest.Round(time.Millisecond), busy.Round(time.Millisecond))
	if slowest > roundGrace {
		t.Errorf("a stop took %v, longer than the deadline", slowest)
	}
	if busy > wall/2 {
		t.Errorf("%v of CPU time in %v of stopping: somebody spins", busy, wall)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

// startAndStop is one round: it returns how long the stop took, and the CPU time that the process used meanwhile.
func startAndStop(t *testing.T, server *localapi.Server, after time.Duration, round int) (wall, busy time.Duration) {
	o := manager.Options{GracefulTimeout: roundGrace}
	if round%2 == 0 {
		o.LeaderElection = manager.LeaderElection{
			Enabled: true, Name: "rounds", Identity: fmt.Sprint("round-", round),
			// so that a release may take as long as the work
			Options: leader.Options{LeaseDuration: 3 * roundGrace, RenewDeadline: 2 * roundGrace},
		}
	}
	m, err := manager.New(server.RESTConfig(), o)
	if err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(ctrl.ReconcilerFunc(
		func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
			time.Sleep(roundWork)
			return ctrl.Result{RequeueAfter: time.Millisecond}, ctx.Err()
		}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	time.Sleep(after)
	begin, used := time.Now(), cpuTime()
	stop()
	if err := <-done; err != nil {
		t.Errorf("round %d: %v", round, err)
	}
	return time.Since(begin), cpuTime() - used
}

// settled waits, for a second at most, until there are no more goroutines than wanted, and returns how many there are.
func settled(wanted int) int {
	for range 100 {
		if runtime.NumGoroutine() <= wanted {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}

// cpuTime returns the CPU time that this process has used so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
