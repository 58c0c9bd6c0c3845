package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/manager"
)

// flyball runs the program in this process.
func flyball(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, append([]string{}, args...), &out, &errs) // without arguments, nil would be those of the test
	return code, out.String(), errs.String()
}

// TestDemo plays the whole story and sees that nothing of it still runs.
func TestDemo(t *testing.T) {
	defer goleak.VerifyNone(t)
	code, out, errs := flyball(t.Context(), "demo", "--speed", "20", "--timeout", "5m")
	if code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, errs, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "demo: ok") {
		t.Errorf("the last line is %q", last)
	}
	step := regexp.MustCompile(`^\d  .* watch +\d+ → queue +\d+ → sync +\d+ `)
	steps := 0
	for _, line := range lines {
		if step.MatchString(line) {
			steps++
		}
	}
	if steps != 7 {
		t.Errorf("%d steps are shown, want 7:\n%s", steps, out)
	}
}

// A step that cannot end in time fails the demo, which says what is missing.
func TestDemoThatDoesNotConverge(t *testing.T) {
	defer goleak.VerifyNone(t)
	code, out, errs := flyball(t.Context(), "demo", "--speed", "0.01", "--timeout", "300ms")
	if code != 1 || !strings.Contains(errs, `did not converge within 300ms: expected `) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if strings.Contains(out, "demo: ok") || !strings.Contains(out, "FAILED after") {
		t.Errorf("the story:\n%s", out)
	}
}

// Ctrl-C is no failure: the code is the shell's for it, and one line says where the story was.
func TestCtrlCIsNoFailure(t *testing.T) {
	defer goleak.VerifyNone(t)
	var errs bytes.Buffer
	out := &tripwire{text: "1  create", f: func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) }}
	code := run(t.Context(), []string{"demo", "--timeout", "5m", "--speed", "0.3"}, out, &errs)
	if want := regexp.MustCompile(`^flyball: demo: stopped at "[^"\n]+"\n$`); code != 130 ||
		!want.MatchString(errs.String()) {
		t.Errorf("exit code %d: %q", code, &errs)
	}
}

// What a signal ends has a code and a line of its own; what a signal does not end fails as ever.
func TestEnded(t *testing.T) {
	for _, c := range []struct {
		cause error
		code  int
		says  string
	}{
		{manager.SignalError{Signal: syscall.SIGINT}, 130, "run: stopped before everything was done; more"},
		{manager.SignalError{Signal: syscall.SIGTERM}, 143, "run: stopped before everything was done; more"},
		{errors.New("other"), 0, "run: stopped before everything was done: other\nmore"},
	} {
		ctx, stop := context.WithCancelCause(t.Context())
		stop(c.cause)
		err := ended(ctx, "run",
			errors.Join(fmt.Errorf("stopped before everything was done: %w", c.cause), errors.New("more")))
		code := 0
		if stopped := (*stoppedError)(nil); errors.As(err, &stopped) {
			code = stopped.code()
		}
		if code != c.code || err.Error() != c.says {
			t.Errorf("%v: code %d, %q", c.cause, code, err)
		}
		if ended(ctx, "run", nil) != nil {
			t.Error("what was done before the signal is an error")
		}
	}
}

// The interruption comes when the first step is on the screen: the next ones have not ended by then.
func TestInterruptedDemo(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var errs bytes.Buffer
	code := run(ctx, []string{"demo", "--timeout", "5m"}, &tripwire{text: "1  create", f: interrupt}, &errs)
	if code != 1 || !strings.Contains(errs.String(), "stopped at") {
		t.Errorf("exit code %d: %s", code, &errs)
	}
}

// TestDemoKeeps: after the story the kubeconfig that is told leads to the API, until the end.
func TestDemoKeeps(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	told, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		defer out.Close()
		code <- run(ctx, []string{"demo", "--speed", "50", "--timeout", "5m", "--keep"}, out, io.Discard)
	}()
	for lines := bufio.NewScanner(told); lines.Scan(); {
		path, found := strings.CutPrefix(lines.Text(), "  export KUBECONFIG=")
		if !found {
			continue
		}
		if _, err := clientOf(ctx, t, path).CoreV1().Namespaces().List(ctx, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		end()
	}
	if c := <-code; c != 0 {
		t.Errorf("exit code %d", c)
	}
}

// TestDemoPage: the page is there while the story runs and after it, until Ctrl-C.
func TestDemoPage(t *testing.T) {
	defer goleak.VerifyNone(t)
	told, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		defer out.Close()
		code <- run(t.Context(), []string{"demo", "--speed", "50", "--timeout", "5m", "--page=127.0.0.1:0"}, out,
			io.Discard)
	}()
	urls := regexp.MustCompile(`http://127\.0\.0\.1:\d+/inspect/`)
	last := ""
	shown := 0
	for lines := bufio.NewScanner(told); lines.Scan(); {
		last = lines.Text()
		url := urls.FindString(last)
		if url == "" {
			continue
		}
		shown++
		ready := get(t, url+"api/pipeline")["ready"]
		if strings.Contains(last, "Ctrl-C") {
			if ready != nil {
				t.Errorf("the manager is not ready: %v", ready)
			}
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c := <-code; c != 0 || shown != 2 || !strings.HasPrefix(last, "demo: ok") {
		t.Errorf("exit code %d, %d URLs, the last line is %q", c, shown, last)
	}
}

// get reads a JSON object.
func get(t *testing.T, url string) (answer map[string]any) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Errorf("%s: %s: %v", url, response.Status, err)
	}
	return answer
}

// tripwire calls f when text is written to it.
type tripwire struct {
	text string
	f    func()
}

func (w *tripwire) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.f()
	}
	return len(p), nil
}

// TestWrongCommandLines: each ends with 2 and one line that says what to do, before anything starts.
func TestWrongCommandLines(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	valid := filepath.Join(t.TempDir(), "valid")
	if err := os.WriteFile(valid, []byte(deadKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte(`{apiVersion: flyball.dev/v1alpha1, kind: ManagerConfiguration,
generic: {controllers: [deployment]}, garbageCollectorController: {concurrentGCSyncs: 0}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, says string }{
		{"dem", `unknown command "dem"`},
		{"demo extra", `unexpected argument "extra"`},
		{"demo --spee 1", "unknown flag: --spee"},
		{"demo --speed 0", "--speed 0: it must be more than 0"},
		{"demo --speed NaN", "--speed NaN: it must be more than 0"},
		{"demo --speed x", `invalid argument "x" for "--speed"`},
		{"demo --page=0.0.0.0:1", "--page 0.0.0.0:1: it must be a loopback address"},
		{"demo --page 127.0.0.1:1", `unexpected argument "127.0.0.1:1"; --page=ADDRESS needs the equals sign`},
		{"demo --page=127.0.0.1:70000", "--page 127.0.0.1:70000: the port must be between 0 and 65535"},
		{"demo --page=6060", "--page: address 6060: missing port in address"},
		{
			"demo --step --scenario x",
			"--scenario x: it must be one of create, endpoints, rollout, stuck, rollback, scale, delete, leader, " +
				"lease, takeover, start, lost, away, forgotten",
		},
		{"learn --address 0.0.0.0:80", "--address 0.0.0.0:80: it must be a loopback address"},
		{"learn --address x", "--address: address x: missing port in address"},
		{"learn --dir /none", "--dir /none: it must be a checkout of Flyball"},
		{"manager --inspect-address :6060", "--inspect-address :6060 is not loopback: give --tls-cert-file"},
		{"trace deployment", "name one object as KIND/NAME, for example deployment/web"},
		{"trace a/b --address 127.0.0.1", `--address "127.0.0.1": it must be host:port`},
		{"top --address 127.0.0.1:70000", `--address "127.0.0.1:70000": it must be host:port`},
		{"trace a/b/c", "name one object as KIND/NAME"},
		{"trace a/b -o yaml", `--output "yaml": it must be text or json`},
		{"trace a/b --token-file x --address http://y", "--token-file: the token would be sent without TLS"},
		{"demo --kubeconfig /none", "--kubeconfig: stat /none: no such file or directory"},
		{"demo --kubeconfig /none --keep", "--keep has no meaning with --kubeconfig"},
		{"demo --images nginx", "--images: it must be two, are 1"},
		{"demo --timeout -1s", "--timeout -1s: it must be more than 0"},
		{
			"manager --controllers=deploymnt",
			`"deploymnt" is not in the list of known controllers: deployment-controller (deployment)`,
		},
		{"manager --controllers=-deployment,-replicaset", "leaves no controller to run"},
		{"manager --config /none", "--config: open /none: no such file or directory"},
		{"manager --config " + valid, "--config " + valid + ": it must begin with apiVersion: flyball.dev/v1alpha1"},
		{"manager --config " + config, "--concurrent-gc-syncs 0: it must be at least 1"},
		{
			"manager --concurrent-gc-syncs 1 --controllers=-deployment --config " + config,
			"leaves no controller to run",
		},
		{"manager --port 70000", "--port 70000: it must be between 0 and 65535"},
		{"manager --bind-address nowhere", `--bind-address "nowhere": it must be an IP address or localhost`},
		{"run -f x --namespace A", `--namespace "A": a lowercase RFC 1123 label`},
		{"run -f x --kubelet=pause", `invalid argument "pause" for "--kubelet" flag: it must be pretend or off`},
		{"run -f x --timeout 0s", "--timeout 0s: it must be positive"},
		{"run -f x --output xml", `--output "xml": it must be table, json or yaml`},
		{"run", "nothing to do: pass -f"},
		{"serve --addr 127.0.0.1", "--addr: address 127.0.0.1: missing port"},
		{"serve --addr 127.0.0.1:web", `--addr: "127.0.0.1:web": the port must be between 0 and 65535`},
		{"serve --page=0.0.0.0:1", "--page 0.0.0.0:1: it must be a loopback address"},
		{"serve --page 127.0.0.1:1", `unexpected argument "127.0.0.1:1"; --page=ADDRESS needs the equals sign`},
		{"serve --step --page=6060", "--page: address 6060: missing port in address"},
		{"serve --page --controllers=", "--page: there are no controllers to show; --step shows what other clients do"},
		{"serve --kubelet=pause", `invalid argument "pause" for "--kubelet" flag: it must be pretend or off`},
		{
			"serve --allowed-hosts=api.test:80",
			`--allowed-hosts: "api.test:80": it must be a name without scheme and port`,
		},
		{"manager --tls-cert-file x", "--tls-cert-file and --tls-private-key-file need each other"},
		{
			"manager --tls-cert-file /none --tls-private-key-file /none --kubeconfig " + valid,
			"certificate /none with key /none: open /none",
		},
		{"manager --logging-format xml", `--logging-format "xml": it must be text or json`},
		{"manager --kube-api-burst 0", "--kube-api-burst 0: it must be at least 1"},
		{
			"manager --kube-api-content-type foo/bar",
			`--kube-api-content-type "foo/bar": it must be one of application/vnd.kubernetes.protobuf, ` +
				"application/json",
		},
		{"manager --concurrent-gc-syncs 0", "--concurrent-gc-syncs 0: it must be at least 1"},
		{
			"manager --concurrent-service-endpoint-syncs 0",
			"--concurrent-service-endpoint-syncs 0: it must be at least 1",
		},
		{"manager --max-endpoints-per-slice 0", "--max-endpoints-per-slice 0: it must be between 1 and 1000"},
		{"manager --max-endpoints-per-slice 1001", "--max-endpoints-per-slice 1001: it must be between 1 and 1000"},
		{
			"manager --mirroring-max-endpoints-per-subset 1001",
			"--mirroring-max-endpoints-per-subset 1001: it must be between 1 and 1000",
		},
		{
			"manager --mirroring-concurrent-service-endpoint-syncs 0",
			"--mirroring-concurrent-service-endpoint-syncs 0: it must be at least 1",
		},
		{
			"manager --endpointslice-updates-batch-period -1s",
			"--endpointslice-updates-batch-period -1s: it must not be negative",
		},
		{"manager --controller-shutdown-timeout -1s", "--controller-shutdown-timeout -1s: it must not be negative"},
		{
			"manager --leader-elect-lease-duration 1s --kubeconfig " + valid,
			"lease duration 1s must be longer than the renew deadline 10s",
		},
		{"manager", "none, which does not exist"},
		{"manager --kubeconfig " + empty, "--kubeconfig: " + empty + " names no cluster"},
		{
			"manager --leader-elect-resource-name Bad_Name --kubeconfig " + valid,
			`the name "Bad_Name" of the lease: a lowercase RFC 1123 subdomain`,
		},
		{"manager --leader-elect-resource-namespace a.b --kubeconfig " + valid, `the namespace "a.b" of the lease: `},
		{"manager --kubeconfig /no/such/file", "--kubeconfig: stat /no/such/file: no such file or directory"},
		{"manager --kubeconfig " + broken, "kubeconfig: "},
		{"rbac --for -1s --kubeconfig " + valid, "--for -1s: it must not be negative"},
		{"version extra", `unexpected argument "extra"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, out, errs := flyball(t.Context(), strings.Fields(c.args)...)
			if code != 2 || !strings.Contains(errs, c.says) || out != "" {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
			}
			if strings.Count(errs, "\n") != 1 {
				t.Errorf("want one line, got %q", errs)
			}
		})
	}
}

// deadKubeconfig names a port on which nobody listens.
const deadKubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}],"users":[{"name":"c","user":{}}]}`

// An IPv6 address has colons of its own. This one, of the range for documentation, cannot be bound: the error shows
// what was tried.
func TestBindAddressOfIPv6(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(deadKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := flyball(t.Context(), "manager", "--leader-elect=false", "--kubeconfig", kubeconfig,
		"--bind-address", "2001:db8::1", "--port", "10301")
	if code != 1 || !strings.Contains(errs, "serve health and metrics: listen tcp [2001:db8::1]:10301: ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// The manager's caches do without what none of its controllers reads.
func TestManagerTrimsItsCaches(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
	}
	kept, err := newManagerFlags().options().Informers.Transform(pod)
	if err != nil || kept.GetName() != "p" || kept.GetManagedFields() != nil {
		t.Errorf("kept %v, %v", kept, err)
	}
}

// TestManagerConfigFields: each field sets a flag, and each flag for a controller has a field.
func TestManagerConfigFields(t *testing.T) {
	set := newManager().Flags()
	has := map[string]bool{}
	for path, flag := range configFields {
		has[flag] = true
		if set.Lookup(flag) == nil {
			t.Errorf("%s sets --%s, which does not exist", path, flag)
		}
	}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	newManagerFlags().process.AddFlags(own)
	set.VisitAll(func(flag *pflag.Flag) {
		if own.Lookup(flag.Name) == nil && !has[flag.Name] {
			t.Errorf("no field sets --%s", flag.Name)
		}
	})
}

// TestManagerCollectsEarly: unless the environment says when to collect, and then Go has done what it says.
func TestManagerCollectsEarly(t *testing.T) {
	for env, want := range map[string]int{"": heapGrowth, "70": 123} {
		before := debug.SetGCPercent(123)
		t.Setenv("GOGC", env)
		restore := spareMemory()
		during := debug.SetGCPercent(123)
		debug.SetGCPercent(during)
		restore()
		if after := debug.SetGCPercent(before); during != want || after != 123 {
			t.Errorf("GOGC=%q: %d %% while it runs, want %d; %d %% afterwards, want 123", env, during, want, after)
		}
	}
}

func TestHelpNamesTheCommands(t *testing.T) {
	code, out, _ := flyball(t.Context())
	if code != 0 || !strings.Contains(out, "demo") || !strings.Contains(out, "manager") {
		t.Errorf("exit code %d, stdout %q", code, out)
	}
}

// TestDemoStep lets single steps of the demo's controllers through, sets a fault, and then lets all of them through.
func TestDemoStep(t *testing.T) {
	for _, fault := range []string{"conflict", "lost answer", "cut watch", "crash"} {
		t.Run(fault, func(t *testing.T) { demoStep(t, fault) })
	}
}

func demoStep(t *testing.T, fault string) {
	defer goleak.VerifyNone(t)
	told, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		defer out.Close()
		code <- run(t.Context(), []string{"demo", "--speed", "50", "--page=127.0.0.1:0", "--step"}, out, io.Discard)
	}()
	urls := regexp.MustCompile(`http://127\.0\.0\.1:\d+/inspect/`)
	last, url := "", ""
	for lines := bufio.NewScanner(told); lines.Scan(); {
		last = lines.Text()
		if found := urls.FindString(last); found != "" {
			url = found + "api/tap?"
		}
		switch {
		case strings.Contains(last, "are paused"):
			go func() {
				for range 4 {
					for len(get(t, url)["waiting"].([]any)) == 0 {
						time.Sleep(5 * time.Millisecond) // The controllers are about to do something.
					}
					post(t, url+"do=step")
				}
				post(t, url+"do=inject&fault="+strings.ReplaceAll(fault, " ", "+"))
				post(t, url+"do=open")
			}()
		case strings.Contains(last, "Ctrl-C"):
			if happened, _ := get(t, url)["happened"].([]any); len(happened) != 1 {
				t.Errorf("faults that happened: %v", happened)
			}
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c := <-code; c != 0 || !strings.HasPrefix(last, "demo: ok") {
		t.Errorf("exit code %d, the last line is %q", c, last)
	}
}

func post(t *testing.T, url string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Post(url, "", nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("POST %s: %s", url, answer.Status)
	}
}
