package manager_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/reconcile"
)

// fetch waits until the address answers.
func fetch(t *testing.T, addr func() string, path string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for deadline := time.Now().Add(2 * time.Minute); ; {
		if a := addr(); a != "" {
			response, err := client.Get("http://" + a + path)
			if err == nil {
				body, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				return response.StatusCode, string(body)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer", path)
		}
	}
}

func TestServesHealthAndMetrics(t *testing.T) {
	for name, metricsAddr := range map[string]string{"one port": "127.0.0.1:0", "two ports": "localhost:0"} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			w := newWorld(t)
			m := w.manager(t,
				manager.Options{HealthAddr: "127.0.0.1:0", MetricsAddr: metricsAddr, Metrics: metrics.New()})
			podController(t, m)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- m.Run(ctx) }()

			if code, body := fetch(t, m.HealthAddr, "/livez"); code != 200 || body != "ok\n" {
				t.Errorf("livez: %d %q", code, body)
			}
			for { // until it is ready
				if code, _ := fetch(t, m.HealthAddr, "/readyz"); code == 200 {
					break
				}
			}
			code, body := fetch(t, m.MetricsAddr, "/metrics")
			for _, part := range []string{
				`informer_objects{resource="pods"} 0`,
				`controller_runtime_active_workers{controller="pod-controller"} 0`, `events_queued 0`,
			} {
				if code != 200 || !strings.Contains(body, part) {
					t.Errorf("metrics (%d) lack %s", code, part)
				}
			}
			if same := m.HealthAddr() == m.MetricsAddr(); same != (name == "one port") {
				t.Errorf("health on %s, metrics on %s", m.HealthAddr(), m.MetricsAddr())
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if _, err := net.Dial("tcp", m.HealthAddr()); err == nil {
				t.Error("the port is still open")
			}
			if err := w.server.Close(); err != nil { // before the leak check
				t.Error(err)
			}
		})
	}
}

func TestListenersCanBeOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a socket would hang the bubble
		for _, addr := range []string{"", "0"} {
			m := newWorld(t).manager(t, manager.Options{HealthAddr: addr, MetricsAddr: addr})
			live(t, m).mustEnd()
		}
	})
}

func TestMisuseIsFoundAtOnce(t *testing.T) {
	if _, err := manager.New(&rest.Config{}, manager.Options{MetricsAddr: ":0"}); err == nil ||
		!strings.Contains(err.Error(), "Metrics is nil") {
		t.Errorf("metrics without a registry: %v", err)
	}
	o := elected()
	o.LeaderElection.LeaseDuration = time.Second
	if _, err := manager.New(&rest.Config{}, o); err == nil || !strings.Contains(err.Error(), "lease duration") {
		t.Errorf("a lease shorter than its renewal: %v", err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	m, err := manager.New(&rest.Config{}, manager.Options{HealthAddr: taken.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port that is taken: %v", err)
	}
}

// refusal returns the error of a manager for a host that is not an API server, once the manager has waited long enough
// for an answer.
func refusal(t *testing.T, host string) string {
	t.Helper()
	for patience := 50 * time.Millisecond; ; patience *= 4 {
		m, err := manager.New(&rest.Config{Host: host}, manager.Options{ServerTimeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		if err = m.Run(t.Context()); err == nil {
			t.Fatal("it ran")
		}
		if !strings.HasSuffix(err.Error(), "no answer in time") || patience > time.Minute {
			return err.Error()
		}
	}
}

func TestUnreachableServerIsOneLine(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	if got := refusal(t, "https://127.0.0.1:1"); got != "cannot reach https://127.0.0.1:1: connection refused" {
		t.Errorf("error %s", got)
	}
}

// If the kubeconfig has http for a server of https, the error has the server's message.
func TestPlainHTTPToAServerOfHTTPS(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	host := strings.Replace(server.URL, "https", "http", 1)
	want := host + " does not answer as an API server: Client sent an HTTP request to an HTTPS server."
	if got := refusal(t, host); got != want {
		t.Errorf("error %s, want %s", got, want)
	}
}

func TestServerThatIsAwayAtTheStart(t *testing.T) {
	drop := func(*gate.Request) gate.Verdict { return gate.Verdict{Action: gate.Drop} }
	t.Run("for good", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.refuse(drop)
			l := live(t, w.manager(t, manager.Options{}))
			if err := l.Ready(); err == nil ||
				!strings.Contains(err.Error(), "manager: cannot reach http://localapi: ") {
				t.Errorf("ready while waiting: %v", err)
			}
			start := time.Now()
			err := <-l.done
			if err == nil || !strings.HasPrefix(err.Error(), "cannot reach http://localapi: ") ||
				time.Since(start) > 10*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("for a moment", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.refuse(drop)
			l := live(t, w.manager(t, manager.Options{}))
			time.Sleep(5 * time.Second)
			w.refuse(nil)
			time.Sleep(2 * time.Second)
			if err := l.Ready(); err != nil {
				t.Error(err)
			}
			if lines := l.logs.with("Waiting for the API server"); len(lines) != 1 {
				t.Errorf("log lines %q, want one", lines)
			}
			l.mustEnd()
		})
	})
	t.Run("stopped meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.refuse(drop)
			live(t, w.manager(t, manager.Options{})).mustEnd()
		})
	})
	t.Run("silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			hang := make(chan struct{})
			w.refuse(func(*gate.Request) gate.Verdict { <-hang; return gate.Verdict{} })
			l := live(t, w.manager(t, manager.Options{}))
			if err := <-l.done; err == nil || err.Error() != "cannot reach http://localapi: no answer in time" {
				t.Errorf("error %v", err)
			}
			close(hang)
		})
	})
	t.Run("refusing the credentials", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.refuse(
				func(*gate.Request) gate.Verdict { return gate.FailWith(apierrors.NewUnauthorized("Unauthorized")) },
			)
			l := live(t, w.manager(t, manager.Options{}))
			if err := <-l.done; err == nil ||
				err.Error() != "http://localapi rejects the credentials: Unauthorized" {
				t.Errorf("error %v", err)
			}
		})
	})
}

// TestStartSendsNoRequestTwice: the question whether the server is there is the one for its identity, and discovery is
// asked about a group and version once, for the caches of two kinds and for the client.
func TestStartSendsNoRequestTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		config, sent := w.server.RESTConfig(), &paths{}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { sent.next = next; return sent })
		m, err := manager.New(config, manager.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = builder.ControllerManagedBy(m).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(
			reconcile.Func[reconcile.Request](func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		if err := m.GetAPIReader().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"},
			&corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Error(err)
		}
		l.mustEnd()
		slices.Sort(sent.paths)
		want := []string{
			"/api/v1", "/api/v1/configmaps", "/api/v1/configmaps?watch", "/api/v1/namespaces/default/configmaps/a",
			"/api/v1/namespaces/kube-system", "/api/v1/secrets", "/api/v1/secrets?watch",
		}
		if !slices.Equal(sent.paths, want) {
			t.Errorf("requests:\n%q, want\n%q", sent.paths, want)
		}
	})
}

// paths writes down the paths of requests.
type paths struct {
	next http.RoundTripper

	mu    sync.Mutex
	paths []string
}

func (p *paths) RoundTrip(r *http.Request) (*http.Response, error) {
	path := r.URL.Path
	if r.URL.Query().Get("watch") != "" {
		path += "?watch"
	}
	p.mu.Lock()
	p.paths = append(p.paths, path)
	p.mu.Unlock()
	return p.next.RoundTrip(r)
}

// TestSignals runs this test binary as a process of its own and sends it signals.
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		name    string
		signals []syscall.Signal
		status  int
		output  string
	}{
		{"SIGTERM drains", []syscall.Signal{syscall.SIGTERM}, 0, "received terminated\nfinished\n"},
		{"Ctrl-C drains", []syscall.Signal{syscall.SIGINT}, 0, "received interrupt\nfinished\n"},
		{
			"a second signal exits at once",
			[]syscall.Signal{syscall.SIGTERM, syscall.SIGINT},
			1,
			"received terminated\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestSignalChild$")
			child.Env = append(os.Environ(), fmt.Sprintf("FLYBALL_SIGNAL_CHILD=%d", len(c.signals)))
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			var output strings.Builder
			for i, s := range c.signals { // one for each line that the child writes
				line := make([]byte, 64)
				n, err := out.Read(line)
				if err != nil {
					t.Fatal(err)
				}
				output.Write(line[:n])
				if i > 0 {
					time.Sleep(manager.OneSignal) // a signal that comes sooner is ignored
				}
				if err := child.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			rest, err := io.ReadAll(out)
			if err != nil {
				t.Fatal(err)
			}
			output.Write(rest)
			_ = child.Wait()
			got := strings.TrimPrefix(output.String(), "waiting\n")
			if i := strings.Index(got, "PASS"); i >= 0 {
				got = got[:i]
			}
			if status := child.ProcessState.ExitCode(); status != c.status || got != c.output {
				t.Errorf("exit status %d, output %q; want %d, %q", status, got, c.status, c.output)
			}
		})
	}
}

// TestSignalsWithinASecondCountOnce: signals within a second of the first one are ignored.
func TestSignalsWithinASecondCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, released := make(chan os.Signal), make(chan struct{})
		var heard []string
		begin := time.Now()
		note := func(what string) func(os.Signal) {
			return func(s os.Signal) {
				heard = append(heard, fmt.Sprintf("%s by %v after %v", what, s, time.Since(begin)))
			}
		}
		go manager.WatchSignals(signals, released, note("stop"), note("end"))
		for _, pause := range []time.Duration{0, time.Millisecond, 998 * time.Millisecond} {
			time.Sleep(pause)
			signals <- syscall.SIGTERM
			synctest.Wait()
		}
		want := []string{"stop by terminated after 0s"}
		if !slices.Equal(heard, want) {
			t.Errorf("within a second: %q", heard)
		}
		time.Sleep(time.Millisecond)
		signals <- syscall.SIGINT
		synctest.Wait()
		if want = append(want, "end by interrupt after 1s"); !slices.Equal(heard, want) {
			t.Errorf("after a second: %q", heard)
		}
	})
}

// TestSignalChild is the child process of TestSignals. It prints that it is waiting. After the first signal it finishes
// its work. If the test sends a second signal, that work never ends by itself.
func TestSignalChild(t *testing.T) {
	signals := os.Getenv("FLYBALL_SIGNAL_CHILD")
	if signals == "" {
		t.Skip("only as a child of TestSignals")
	}
	ctx, release := manager.SetupSignals(context.Background())
	defer release()
	fmt.Println("waiting")
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	if signals == "2" {
		<-make(chan struct{})
	}
	fmt.Println("finished")
}

func TestSignalsAreGivenBack(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for range 3 {
		ctx, release := manager.SetupSignals(t.Context())
		release()
		release()
		if ctx.Err() == nil {
			t.Error("the context outlives its release")
		}
	}
}

// TestGuardOfThePagesPort checks all that is served at DebugAddr, and the metrics if they have the same address.
// Requests are rejected if their Host is a name other than localhost, or if they come from a page of another site.
// Otherwise such a page could use the browser of a user to read what is served here.
func TestGuardOfThePagesPort(t *testing.T) {
	m, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		DebugAddr: "127.0.0.1:0", MetricsAddr: "127.0.0.1:0", HealthAddr: "127.0.0.1:0", ServerTimeout: -1,
		Metrics: metrics.New(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	for m.DebugAddr() == "" {
		runtime.Gosched()
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/debug/pprof/", "/configz", "/metrics"} {
		for _, c := range []struct {
			host, site string
			want       int
		}{
			{"", "", http.StatusOK},
			{"localhost:1", "none", http.StatusOK},
			{"", "same-origin", http.StatusOK},
			{"evil.example.com", "", http.StatusForbidden},
			{"evil.example.com:80", "same-origin", http.StatusForbidden},
			{"", "cross-site", http.StatusForbidden},
			{"", "same-site", http.StatusForbidden},
		} {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.DebugAddr()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
			}
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != c.want {
				t.Errorf("%s of host %q for a page that is %q: %s, want %d", path, c.host, c.site, response.Status,
					c.want)
			}
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
