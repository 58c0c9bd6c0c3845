package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/kit"
)

// page runs the commands of a page. Its fields are what takes the place of what the page names.
type page struct {
	t               *testing.T
	source          string
	kubeconfig      string
	webhooks        string // the address
	inspector       string // the address
	manager         *exec.Cmd
	managerLog      bytes.Buffer
	served          chan struct{}
	missing         string // a program that is not there: what needs it is left out
	compared, known int    // commands
}

var (
	consoles = regexp.MustCompile("(?ms)^```console\n(.*?)^```")
	age      = regexp.MustCompile(`\b\d+m?s\b`)
)

// TestAuthorsPage runs the commands of docs/authors.md, and compares what they print.
func TestAuthorsPage(t *testing.T) {
	kit.Guard(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(source, "docs/authors.md"))
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, source: source, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), webhooks: freeAddress(t)}
	p.inspector = freeAddress(t)
	for _, program := range []string{"make", "kubectl"} {
		if _, err := exec.LookPath(program); err != nil {
			p.missing = program
		}
	}
	t.Setenv("PATH", filepath.Dir(kit.Build(t, "./cmd/flyball"))+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("CONTROLLER_GEN", "true") // nothing to generate
	for _, name := range []string{"MAKEFLAGS", "MAKELEVEL", "MFLAGS"} {
		t.Setenv(name, "") // Below another make, make would print the folders that it enters and leaves.
	}
	t.Chdir(t.TempDir())
	serving, stop := context.WithCancel(ctx)
	defer func() { // Also when a command fails: other tests look for goroutines that are left.
		p.stopManager()
		stop()
		if p.served != nil {
			<-p.served
		}
	}()
	for _, block := range consoles.FindAllStringSubmatch(string(text), -1) {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			p.run(ctx, serving, command, strings.TrimRight(want, "\n"))
		}
	}
	if p.known < 27 || p.missing == "" && p.compared < 25 {
		t.Errorf("the page has %d commands, of which %d were compared", p.known, p.compared)
	}
	if p.missing != "" {
		t.Logf("there is no %s: the commands after those of flyball were left out", p.missing)
	}
}

// freeAddress returns an address of loopback that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// run runs one command of the page.
func (p *page) run(ctx, serving context.Context, command, want string) {
	p.t.Helper()
	p.known++
	for page, here := range map[string]string{
		"~/src/flyball": p.source, "/tmp/guestbook.kubeconfig": p.kubeconfig, "127.0.0.1:9443": p.webhooks,
	} {
		command = strings.ReplaceAll(command, page, here)
	}
	words := strings.Fields(command)
	switch {
	case words[0] == "mkdir":
		if err := os.Mkdir(words[1], 0o755); err != nil {
			p.t.Fatal(err)
		}
		p.t.Chdir(words[1])
	case words[0] == "flyball" && (words[1] == "trace" || words[1] == "top"):
		if p.missing == "" {
			p.shell(ctx, command+" --address="+p.inspector, want)
		}
	case words[0] == "flyball" && words[1] != "serve":
		code, out, errs := flyball(ctx, words[1:]...)
		if code != 0 {
			p.t.Fatalf("%s: exit code %d: %s", command, code, errs)
		}
		p.compare(command, want, out)
	case p.missing != "":
	case words[0] == "flyball":
		p.served = make(chan struct{})
		go func() {
			defer close(p.served)
			flyball(serving, words[1:]...)
		}()
		configOf(ctx, p.t, p.kubeconfig)
	case words[0] == "export":
		name, value, _ := strings.Cut(words[1], "=")
		p.t.Setenv(name, value)
	case strings.HasPrefix(command, "make run"):
		p.startManager(ctx)
	default:
		p.shell(ctx, command, want)
	}
}

// shell runs a command. The first object is refused until the manager serves its webhooks, and what it does takes a
// moment: apply and get run until they print what the page says.
func (p *page) shell(ctx context.Context, command, want string) {
	p.t.Helper()
	var out []byte
	attempts := 1
	if strings.HasPrefix(command, "kubectl apply") || strings.HasPrefix(command, "kubectl get") {
		attempts = 100
	}
	for range attempts {
		out, _ = exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
		if like(want, string(out)) {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if !p.compare(command, want, string(out)) {
		p.t.Logf("the manager says:\n%s", &p.managerLog)
		p.t.FailNow()
	}
}

func (p *page) compare(command, want, got string) bool {
	p.t.Helper()
	p.compared++
	if !like(want, got) {
		p.t.Errorf("%s prints\n%s\nand the page says\n%s", command, got, want)
		return false
	}
	return true
}

// like reports whether got is what the page says. A line "…" stands for any lines, and every age for any other.
func like(want, got string) bool {
	pattern := regexp.QuoteMeta(age.ReplaceAllString(strings.TrimSpace(want)+"\n", "1s"))
	pattern = strings.ReplaceAll(pattern, "…\n", `(?:.*\n)*`)
	ok, err := regexp.MatchString("^"+pattern+"$", age.ReplaceAllString(strings.TrimSpace(got)+"\n", "1s"))
	return ok && err == nil
}

// startManager does what make run does, on ports that are free.
func (p *page) startManager(ctx context.Context) {
	p.t.Helper()
	if out, err := exec.CommandContext(ctx, "make", "build").CombinedOutput(); err != nil {
		p.t.Fatalf("make build: %v\n%s", err, out)
	}
	_, port, _ := net.SplitHostPort(p.webhooks)
	p.manager = exec.CommandContext(ctx, "bin/manager", "--port=0", "--webhook-port="+port,
		"--inspect-address="+p.inspector)
	p.manager.Stderr = &p.managerLog
	if err := p.manager.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// stopManager is Ctrl-C in the terminal of make run.
func (p *page) stopManager() {
	p.t.Helper()
	if p.manager == nil {
		return
	}
	err := p.manager.Process.Signal(syscall.SIGINT)
	if err == nil {
		err = p.manager.Wait()
	}
	if err != nil {
		p.t.Errorf("the manager ends: %v\n%s", err, &p.managerLog)
	}
}

func TestLike(t *testing.T) {
	for _, c := range []struct {
		want, got string
		like      bool
	}{
		{"a\nb", "a\nb\n", true},
		{"a\nb", "a\nc\n", false},
		{"a\n…\nd", "a\nb\nc\nd\n", true},
		{"a\n…\nd", "a\nd\n", true},
		{"a\n…\nd", "a\nb\n", false},
		{"x 1s", "x 14s\n", true},
		{"a.c", "abc", false},
	} {
		if got := like(c.want, c.got); got != c.like {
			t.Errorf("%q, %q: %v", c.want, c.got, got)
		}
	}
}
