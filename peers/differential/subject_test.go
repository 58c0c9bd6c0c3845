package differential

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/peers/bench/turns"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// subject is a program whose cost is measured, kube-controller-manager or flyball manager, on a control plane of its
// own.
type subject struct {
	name    string
	plane   *upstream.ControlPlane
	program *program             // flyball manager, if it is that
	client  kubernetes.Interface // of whoever makes the work
	agent   string               // part of the user agent of the program's requests
	url     string               // of its metrics and profiles
	pid     int
	audit   string // the API server's log of requests

	before   time.Duration // the processor time it had used when the measurement began
	profiles []string      // files, once the measurement has ended
	enough   chan struct{} // closed by whoever ends the measurement
	profiled chan error    // one value, from the goroutine that takes profiles, when it has ended
}

// startSubject starts a control plane and the program on it, with these controllers, limits on requests, and without
// leader election. What it gets is what each user of it gets by default, but for these.
func startSubject(t *testing.T, ours bool, controllers []string, l limit) *subject {
	t.Helper()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	s := &subject{
		name: "kube-controller-manager", agent: "kube-controller-manager/",
		audit: filepath.Join(dir, "audit.log"),
	}
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// one file: its requests are counted
	o := upstream.Options{
		Log: os.Stderr,
		APIServerArgs: []string{
			"--audit-policy-file=" + policy, "--audit-log-path=" + s.audit,
			"--audit-log-maxsize=10000",
		},
	}
	flags := []string{"--kube-api-qps=" + l.qps, "--kube-api-burst=" + l.burst}
	if !ours {
		o.Controllers, o.ManagerArgs = controllers, flags
	}
	var err error
	if s.plane, err = upstream.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop(t) })
	s.url, s.pid = s.plane.ManagerURL, s.plane.ManagerPID
	if ours {
		s.program = startManager(t, s.plane.Kubeconfig,
			append(flags, "--leader-elect=false", "--profiling", "--controllers="+join(controllers))...)
		s.name, s.agent, s.url, s.pid = "flyball manager", "flyball/", s.program.url, s.program.cmd.Process.Pid
	}
	s.client = kubernetes.NewForConfigOrDie(adminConfig(t, s.plane))
	eventually(t, func() string {
		_, err := s.get("/healthz")
		return errorText(err)
	})
	return s
}

// stop ends the control plane, and with it what works on it.
func (s *subject) stop(t *testing.T) {
	t.Helper()
	if s.program != nil && !s.program.hasEnded() {
		if err := s.program.stop(t); err != nil {
			t.Error(err)
		}
	}
	if err := s.plane.Stop(); err != nil {
		t.Error(err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// get asks the program.
func (s *subject) get(path string) ([]byte, error) { return ask(s.url + path) }

// begin starts the measurement: processor time and profiles of it.
func (s *subject) begin(t *testing.T) {
	t.Helper()
	s.before = s.cpu(t)
	s.enough, s.profiled = make(chan struct{}), make(chan error, 1)
	dir := t.TempDir()
	go func() { s.profiled <- s.profile(dir) }()
}

// profile takes one profile of some seconds after the other until it is enough. Between two there are milliseconds.
func (s *subject) profile(dir string) error {
	for {
		body, err := s.get("/debug/pprof/profile?seconds=5")
		if err != nil {
			return err
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.pprof", len(s.profiles)))
		if err := os.WriteFile(path, body, 0o600); err != nil {
			return err
		}
		s.profiles = append(s.profiles, path)
		select {
		case <-s.enough:
			return nil
		default:
		}
	}
}

// cost is what a measurement found.
type cost struct {
	cpu     time.Duration // processor time, from beginning to end
	outside time.Duration // of it, outside of what carries requests
	heap    int           // the most memory that the heap ever had, MiB
	memory  int           // the most memory that was resident, MiB
	calls   map[string]int
}

// end ends the measurement.
func (s *subject) end(t *testing.T) cost {
	t.Helper()
	c := cost{cpu: s.cpu(t) - s.before, calls: s.calls(t)}
	close(s.enough)
	if err := <-s.profiled; err != nil {
		t.Fatal(err)
	}
	c.outside = outsideTransport(t, s.profiles)
	c.heap, c.memory = s.heap(t), s.resident(t)
	return c
}

// cpu is the processor time that the program has used.
func (s *subject) cpu(t *testing.T) time.Duration {
	t.Helper()
	cpu, _, err := turns.Usage(s.pid)
	if err != nil {
		t.Fatal(err)
	}
	return cpu
}

// resident is the peak of its resident memory in MiB.
func (s *subject) resident(t *testing.T) int {
	t.Helper()
	_, peak, err := turns.Usage(s.pid)
	if err != nil {
		t.Fatal(err)
	}
	return int(peak >> 20)
}

// heap is the most that the heap ever had, in MiB: memory that the runtime once took for it stays counted.
func (s *subject) heap(t *testing.T) int {
	t.Helper()
	body, err := s.get("/debug/pprof/heap?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	return number(t, string(body), `# HeapSys = (\d+)`) >> 20
}

// metric is a number that the program counts.
func (s *subject) metric(t *testing.T, name string) int {
	t.Helper()
	body, err := s.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return number(t, string(body), `(?m)^`+regexp.QuoteMeta(name)+` (\d+)$`)
}

// calls counts the program's requests in the audit log, by verb. Events are counted apart.
func (s *subject) calls(t *testing.T) map[string]int {
	t.Helper()
	f, err := os.Open(s.audit)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Stage, Verb, UserAgent string
			ObjectRef              struct{ Resource string }
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatal(err)
		}
		began := entry.Stage == "ResponseStarted" // of watches only: their end may be far away
		switch {
		case !strings.HasPrefix(entry.UserAgent, s.agent) || began != (entry.Verb == "watch"):
		case entry.ObjectRef.Resource == "events":
			counts["events"]++
		default:
			counts[entry.Verb]++
		}
	}
	return counts
}
