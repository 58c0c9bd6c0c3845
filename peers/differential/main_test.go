package differential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// plane is the control plane that all tests of this package share. Its users are admin, who may do everything, and
// alice, to whom tests give what they need.
var plane *upstream.ControlPlane

// flyball is the path of the binary, built from this tree.
var flyball string

const aliceToken = "alice-token"

func TestMain(m *testing.M) {
	code, err := withPlane(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withPlane(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "flyball-differential-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	flyball = filepath.Join(dir, "flyball")
	build := exec.Command("go", "build", "-race", "-o", flyball, "./cmd/flyball")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build flyball: %w\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // the first build
	defer cancel()
	plane, err = upstream.Start(ctx, upstream.Options{
		AuthorizationMode: "RBAC", Users: map[string]string{aliceToken: "alice"}, Log: os.Stderr,
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	return m.Run(), nil
}

// program is a running flyball.
type program struct {
	cmd   *exec.Cmd
	url   string        // of its health port
	ended chan struct{} // closed when it has ended, by the goroutine that waits for it
	err   error         // of the wait; read after ended

	mu  sync.Mutex
	out bytes.Buffer
}

// Write takes the program's output.
func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// startManager runs flyball manager with a free port and these flags, and ends it with the test if the test has not.
func startManager(t *testing.T, kubeconfig string, flags ...string) *program {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	p := &program{url: fmt.Sprintf("http://127.0.0.1:%d", port), ended: make(chan struct{})}
	p.cmd = exec.Command(flyball,
		append([]string{"manager", "--kubeconfig=" + kubeconfig, fmt.Sprintf("--port=%d", port)}, flags...)...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("flyball manager printed:\n%s", p.output())
		}
	})
	return p
}

func (p *program) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// stop sends SIGTERM and returns how the program ended.
func (p *program) stop(t *testing.T) error {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
		return p.err
	case <-time.After(20 * time.Second):
		t.Fatal("the manager did not end within 20 s of SIGTERM")
		return nil
	}
}

// eventually asks until the answer is "", and fails the test with the last one after a minute.
func eventually(t *testing.T, ask func() (missing string)) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		missing := ask()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(missing)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
