// Package console types what chapters 1 and 2 of the book tell a reader to type: commands of a shell, beside an API
// server as flyball serve has it. It writes what they print into the pages.
package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/cmd/flyball/serve"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
)

// patience is how long a test waits for something that takes a second on a machine with nothing else to do.
const patience = time.Minute

// A Terminal is a shell in the root of the repository, with a server that belongs to it.
type Terminal struct {
	// Client is a client of the server.
	Client kubernetes.Interface
	// Serve is what the server printed when it started.
	Serve string

	dir string // has docs, and bin with the kubeconfig, as the root of the repository
}

// Open starts a server and returns a terminal beside it. The test is skipped on a machine without sh, sed or curl.
func Open(t testing.TB, o serve.Options) *Terminal {
	t.Helper()
	for _, program := range []string{"sh", "sed", "grep", "base64", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the commands of the book cannot be run here: %v", err)
		}
	}
	x := &Terminal{dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(x.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(book.Dir(), ".."), filepath.Join(x.dir, "docs")); err != nil {
		t.Fatal(err)
	}
	o.Addr, o.Kubeconfig = "127.0.0.1:0", filepath.Join(x.dir, "bin", "kubeconfig")
	o.Namespaces, o.Scheduler = true, true
	started := &firstWrite{done: make(chan struct{})}
	o.Out = started
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	ended := make(chan error, 1) // by the server, once
	go func() { ended <- serve.Run(ctx, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("flyball serve: %v", err)
		}
	})
	select {
	case <-started.done:
		x.Serve = x.tidy(started.text)
	case err := <-ended:
		ended <- nil
		t.Fatalf("flyball serve: %v", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if x.Client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	x.settle(t)
	return x
}

// settle waits for the last things that the server does by itself: it creates two objects in each namespace.
func (x *Terminal) settle(t testing.TB) {
	t.Helper()
	core := x.Client.CoreV1()
	namespaces, err := core.Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for name, begin := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
		"default": core.ServiceAccounts("").Watch, "kube-root-ca.crt": core.ConfigMaps("").Watch,
	} {
		w, err := begin(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for range namespaces.Items {
			if _, open := <-w.ResultChan(); !open {
				t.Fatalf("the server did not create %s in each namespace", name)
			}
		}
	}
}

// firstWrite keeps the first write.
type firstWrite struct {
	once sync.Once
	text string
	done chan struct{} // closed at the first write
}

func (w *firstWrite) Write(p []byte) (int, error) {
	w.once.Do(func() {
		w.text = string(p)
		close(w.done)
	})
	return len(p), nil
}

// command returns a command that a shell runs in the root of the repository.
func (x *Terminal) command(t testing.TB, script string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = x.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PAUSE=0.05", "KUBECONFIG="+filepath.Join(x.dir, "bin", "kubeconfig"))
	return cmd
}

// Run runs the lines one after the other in one shell, after preamble, which is not shown. It returns what a reader
// sees: each line after a $, and what it printed. A line that ends with a backslash goes on in the next.
func (x *Terminal) Run(t testing.TB, preamble string, lines ...string) string {
	t.Helper()
	var script strings.Builder
	fmt.Fprintln(&script, preamble)
	for _, line := range lines {
		fmt.Fprintf(&script, "printf '%%s\\n' '$ %s'\n{ %s\n} 2>&1\n", strings.ReplaceAll(line, "'", `'\''`), line)
		fmt.Fprintln(&script, `[ "$(tail -c 1 .out)" = "" ] || echo`) // The answers of the API end without a new line.
	}
	out, err := os.Create(filepath.Join(x.dir, ".out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := x.command(t, script.String())
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		t.Fatalf("run %q: %v", lines, err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return x.tidy(string(text))
}

// A Job is a command that runs in a second terminal.
type Job struct {
	t     testing.TB
	x     *Terminal
	cmd   *exec.Cmd
	lines *bufio.Reader
}

// Start runs a line in a second terminal.
func (x *Terminal) Start(t testing.TB, preamble, line string) *Job {
	t.Helper()
	cmd := x.command(t, preamble+"\n"+line)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j := &Job{t: t, x: x, cmd: cmd, lines: bufio.NewReader(out)}
	t.Cleanup(j.Stop)
	return j
}

// Line waits for the next line that the command prints.
func (j *Job) Line() string {
	j.t.Helper()
	line, err := j.lines.ReadString('\n')
	if err != nil {
		j.t.Fatalf("the command of the second terminal ended: %v", err)
	}
	return j.x.tidy(line)
}

// Stop ends the command.
func (j *Job) Stop() {
	_ = j.cmd.Process.Kill()
	_ = j.cmd.Wait()
}

var (
	uid     = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	address = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// tidy replaces what is another in every run.
func (x *Terminal) tidy(text string) string {
	text = uid.ReplaceAllString(text, "6924de04-d17e-4cd1-b891-9c17568ba61b")
	text = instant.ReplaceAllString(text, "2026-11-25T21:47:11Z")
	text = address.ReplaceAllString(text, "127.0.0.1:42839")
	return strings.ReplaceAll(text, x.dir, "/home/you/flyball")
}
