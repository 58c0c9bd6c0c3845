package chapter12

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/leader"
)

// A world is an API server in this process, and what is wrong with it.
type world struct {
	*localapi.Test
	client kubernetes.Interface
	diary  *diary

	mu sync.Mutex
	// away are the processes whose requests for leases get no answer. "*" stands for all requests of all, and "watches"
	// for those that are open: they end with their next event.
	away map[string]bool
	// lag is how late a process hears of a change.
	lag map[string]time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{diary: newDiary(), away: map[string]bool{}, lag: map[string]time.Duration{}}
	w.Test = localapi.NewTestWith(t, localapi.Options{Gate: gate.Funcs{
		OnRequest: func(context.Context, *gate.Request) gate.Verdict {
			if w.isAway("*") {
				return gate.Verdict{Action: gate.Drop}
			}
			return gate.Verdict{}
		},
		OnFrame: func(ctx context.Context, r *gate.Request, f gate.Frame) gate.Verdict {
			if w.isAway("watches") {
				return gate.Verdict{Action: gate.Close}
			}
			if lag := w.lag[processOf(r)]; lag > 0 && f.Name != "" {
				select {
				case <-time.After(lag):
				case <-ctx.Done():
				}
			}
			return gate.Verdict{}
		},
	}})
	w.client = kubernetes.NewForConfigOrDie(w.RESTConfig())
	return w
}

// processOf returns the process that sends a request: its user agent begins with it.
func processOf(r *gate.Request) string {
	name, _, _ := strings.Cut(r.UserAgent, "/")
	return name
}

func (w *world) isAway(who string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.away[who]
}

func (w *world) setAway(who string, away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away[who] = away
}

// A wire is the connection of a process to the server.
type wire struct {
	next    http.RoundTripper
	world   *world
	process string
}

func (l *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/leases") && l.world.isAway(l.process) {
		return nil, errNoAnswer
	}
	return l.next.RoundTrip(r)
}

// manager returns the manager of a process.
func (w *world) manager(t *testing.T, name string, elected bool) *manager.Manager {
	t.Helper()
	config := w.RESTConfig()
	config.UserAgent = name + "/v1"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &wire{next, w, name} })
	o := manager.Options{}
	if elected {
		o.LeaderElection = manager.LeaderElection{
			Enabled: true, Namespace: "default", Name: "web.example.com", Identity: name,
			Options: leader.Options{Random: func() float64 { return 0 }},
		}
	}
	m, err := manager.New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// start runs a manager. The function that it returns stops it, and waits for it.
func (w *world) start(t *testing.T, m *manager.Manager, log func(message string)) (stop func() error) {
	t.Helper()
	logger := klog.Logger{}
	if log != nil {
		logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(messages(log))))
	}
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-done
	}
}

// messages passes the messages of a log on, without their keys.
type messages func(string)

var message = regexp.MustCompile(`\] "([^"]*)"`)

func (m messages) Write(line []byte) (int, error) {
	if found := message.FindSubmatch(line); found != nil {
		m(string(found[1]))
	}
	return len(line), nil
}

func (w *world) create(t *testing.T, cm *corev1.ConfigMap) {
	t.Helper()
	cm.Namespace = "default"
	if _, err := w.client.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func named(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
