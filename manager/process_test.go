package manager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
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
)

// The environment of a child process: the API server's address, and what its reconciler does.
const (
	childServer = "FLYBALL_TEST_CHILD_SERVER"
	childWork   = "FLYBALL_TEST_CHILD_WORK"
	childGrace  = "FLYBALL_TEST_CHILD_GRACE" // how long its work may take after a signal
)

// TestProcessChild is the other process of the tests below: a manager whose controller works on the ConfigMap "work".
func TestProcessChild(t *testing.T) {
	host := os.Getenv(childServer)
	if host == "" {
		t.Skip("only as a child")
	}
	grace, err := time.ParseDuration(os.Getenv(childGrace))
	if err != nil {
		t.Fatal(err)
	}
	o := manager.Options{
		GracefulTimeout: grace,
		LeaderElection:  manager.LeaderElection{Enabled: true, Name: "flyball-manager", Identity: "child"},
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: host}, o)
	if err != nil {
		t.Fatal(err)
	}
	maps := clientset(mgr).CoreV1().ConfigMaps("default")
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Named("worker").Complete(ctrl.ReconcilerFunc(
		func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			if r.Name != "work" {
				return ctrl.Result{}, nil
			}
			begun := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "begun"}}
			if _, err := maps.Create(ctx, begun, metav1.CreateOptions{}); err != nil {
				return ctrl.Result{}, err
			}
			if os.Getenv(childWork) == "stuck" {
				select {} // ignores its context
			}
			time.Sleep(2 * time.Second)
			_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "result"}},
				metav1.CreateOptions{})
			return ctrl.Result{}, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveProcesses starts an API server that other processes reach at the address.
func serveProcesses(t *testing.T) (server *localapi.Server, address string) {
	t.Helper()
	server, err := localapi.New(localapi.Options{Audit: &audit.Log{}, NoKubernetesService: true})
	if err != nil {
		t.Fatal(err)
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

// child starts the other process on an API server of its own, and returns when its reconcile is in flight.
func child(t *testing.T, work string,
	grace time.Duration,
) (process *exec.Cmd, output *bytes.Buffer, server *localapi.Server) {
	t.Helper()
	server, address := serveProcesses(t)
	client := kubernetes.NewForConfigOrDie(server.RESTConfig())
	createConfigMap(t, client, "work")
	watch, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=begun"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	output = &bytes.Buffer{}
	process = exec.Command(os.Args[0], "-test.run=^TestProcessChild$")
	process.Env = append(os.Environ(), childServer+"=http://"+address, childWork+"="+work, childGrace+"="+
		grace.String(),
		"GOCOVERDIR="+t.TempDir())
	process.Stdout, process.Stderr = output, output
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() })
	if _, ok := <-watch.ResultChan(); !ok {
		t.Fatalf("no reconcile began:\n%s", output)
	}
	return process, output, server
}

// SIGTERM with a two-second reconcile in flight: exit 0, the result written, then the lease released.
func TestProcessFinishesItsWork(t *testing.T) {
	t.Parallel()
	process, output, server := child(t, "slow", 5*time.Minute)
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Fatalf("exit: %v\n%s", err, output)
	}
	var order []string
	for _, e := range server.Audit().Writes() {
		if e.Name == "result" || e.Resource == "leases" {
			order = append(order, e.String())
		}
	}
	n := len(order)
	if n < 3 || !strings.Contains(strings.Join(order[:n-1], "\n"), "create configmaps default/result 201") {
		t.Fatalf("writes %q", order)
	}
	if last := order[n-1]; last != "update leases kube-system/flyball-manager 200" {
		t.Errorf("the last write was %s, want the release of the lease", last)
	}
	lease, err := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoordinationV1().Leases("kube-system").Get(
		t.Context(), "flyball-manager", metav1.GetOptions{},
	)
	if err != nil || *lease.Spec.HolderIdentity != "" {
		t.Errorf("the lease is not free: %+v, %v", lease, err)
	}
}

// SIGTERM with a reconcile that is stuck: exit 1 after the deadline, with an error that names the controller and the
// key. The lease is not released. The CPU time shows that no goroutine spins meanwhile.
func TestProcessNamesWhatIsStuck(t *testing.T) {
	t.Parallel()
	process, output, server := child(t, "stuck", 5*time.Second)
	before := len(server.Audit().Writes())
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := process.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("exit: %v\n%s", err, output)
	}
	if text := output.String(); !strings.Contains(text,
		"controller worker: 1 of its reconciles did not end in time: default/work (running for") {
		t.Errorf("it does not say what was stuck:\n%s", text)
	}
	if busy := process.ProcessState.UserTime() + process.ProcessState.SystemTime(); busy > 4*time.Second {
		t.Errorf("it used %v of CPU time in a stop of seven seconds", busy)
	}
	for _, e := range server.Audit().Writes()[before:] {
		if e.Resource == "configmaps" && e.Name != "begun" { // the log has it only when its response was sent
			t.Errorf("a write after the signal: %v", e)
		}
	}
}

// A second signal ends the process at once.
func TestProcessEndsAtTheSecondSignal(t *testing.T) {
	t.Parallel()
	process, output, _ := child(t, "stuck", 5*time.Minute)
	ended := make(chan error, 1) // sent once, by the goroutine below
	go func() { ended <- process.Wait() }()
	for {
		// Signals that come too soon after the first count as one with it, so send them until the process ends.
		_ = process.Process.Signal(syscall.SIGINT)
		select {
		case err := <-ended:
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 ||
				!strings.Contains(output.String(), "Exiting immediately") {
				t.Errorf("exit: %v\n%s", err, output)
			}
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}
