package optest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// childServer has the API server's address. If it is set, the process is a child.
const childServer = "FLYBALL_OPERATOR_SERVER"

// Command is the main function of an operator, with its environment passed in.
type Command func(ctx context.Context, args []string, stderr io.Writer) error

// Main is for TestMain. It runs the tests; in a process that [Start] has started it runs the operator, with args.
func Main(m *testing.M, run Command, args ...string) {
	server := os.Getenv(childServer)
	if server == "" {
		os.Exit(m.Run())
	}
	args = append(args, "--master="+server, "--leader-elect=false", "--port=0", "--kube-api-qps=-1")
	if err := run(context.Background(), args, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Serve serves until the test ends, and returns the address.
func Serve(t *testing.T, handler http.Handler) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// The server's error, from the goroutine below.
	server, served := &http.Server{Handler: handler}, make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return "http://" + listener.Addr().String()
}

// Process is an operator in a process of its own.
type Process struct {
	*exec.Cmd
	output bytes.Buffer
}

// Start starts an operator on the API server at address. It is killed when the test ends, at the latest.
func Start(t *testing.T, address string) *Process {
	t.Helper()
	p := &Process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), childServer+"="+address, "GOCOVERDIR="+t.TempDir())
	p.Stdout, p.Stderr = &p.output, &p.output
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	return p
}

// Kill kills the process with SIGKILL. It returns what the process has printed.
func (p *Process) Kill() (output string) {
	if p.ProcessState == nil {
		_ = p.Process.Kill()
		_ = p.Wait() // returns an error: it was killed
	}
	return p.output.String()
}

// KillAfter calls do and kills the process after a while. It returns when both are done.
func (p *Process) KillAfter(d time.Duration, do func()) {
	killed := make(chan struct{}) // closed by the goroutine below when it ends
	go func() {
		defer close(killed)
		time.Sleep(d)
		p.Kill()
	}()
	do()
	<-killed
}

// Rounds returns how often to repeat something: the value of an environment variable, or otherwise if it is not set.
func Rounds(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// Seed returns a random seed and logs it, so that a run can be repeated.
func Seed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

// Await waits until describe returns want, while p runs.
func Await(t *testing.T, p *Process, want string, describe func() string) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got := describe()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the state is\n%s\nwant\n%s\nthe operator printed:\n%s", got, want, p.Kill())
		}
	}
}

// Settled polls describe until its result stays the same for a while, and returns it.
func Settled(describe func() string) (last string) {
	for same := 0; same < 15; time.Sleep(20 * time.Millisecond) {
		if now := describe(); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
	return last
}

// answersWithin is how long the API may take to answer.
const answersWithin = time.Minute

// Served is a running "flyball serve": a cluster in a process of its own.
type Served struct {
	// Kubeconfig is the file with the cluster's kubeconfig, and Config its content.
	Kubeconfig string
	Config     *rest.Config

	cmd *exec.Cmd
	// ended receives the error of the process once, when it ends. The goroutine that waits for the process sends it.
	// Capacity 1, so that it never blocks.
	ended chan error
}

// StartServe runs the flyball program with "serve" in a process of its own, which writes its kubeconfig to a file. It
// returns when the API answers. Call Stop on the result.
//
// Errors: ctx's; the program cannot be started, has ended, or does not answer, with what it printed.
func StartServe(ctx context.Context, flyball, kubeconfig string) (*Served, error) {
	var out bytes.Buffer
	c := &Served{
		Kubeconfig: kubeconfig, cmd: exec.Command(flyball, "serve", "--kubeconfig", kubeconfig),
		ended: make(chan error, 1),
	}
	c.cmd.Stdout, c.cmd.Stderr = &out, &out
	// Ctrl-C is for the example, which stops the process when it is done.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s serve: %w", flyball, err)
	}
	go func() { c.ended <- c.cmd.Wait() }()
	deadline, stop := context.WithTimeoutCause(ctx, answersWithin, fmt.Errorf("no answer within %v", answersWithin))
	defer stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !c.answers() {
		select {
		case err := <-c.ended:
			return nil, fmt.Errorf("%s serve has ended: %w\n%s", flyball, err, out.Bytes())
		case <-deadline.Done():
			return nil, errors.Join(fmt.Errorf("%s serve: %w", flyball, context.Cause(deadline)), c.Stop())
		case <-tick.C:
		}
	}
	return c, nil
}

// answers reports whether there is a kubeconfig, and its server answers.
func (c *Served) answers() bool {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return false
	}
	config.Timeout = time.Second
	asks, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false
	}
	if _, err := asks.ServerVersion(); err != nil {
		return false
	}
	config.Timeout = 0
	c.Config = config
	return true
}

// Stop asks the process to end, and waits until it has.
func (c *Served) Stop() error {
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop flyball serve: %w", err)
	}
	if err := <-c.ended; err != nil {
		return fmt.Errorf("flyball serve: %w", err)
	}
	return nil
}
