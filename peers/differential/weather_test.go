package differential

import (
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// weather stands between the manager and the API server: it delays what watches deliver, while everything else passes
// at once, and at times it drops all connections and takes no new ones, as an API server does that is started anew.
type weather struct {
	url   string
	proxy *httputil.ReverseProxy

	mu     sync.Mutex
	random *rand.Rand
	open   map[net.Conn]bool
	down   bool
	delay  time.Duration // the most that a piece of a watch waits
}

func newWeather(t *testing.T, server *rest.Config, seed uint64) *weather {
	t.Helper()
	target, err := url.Parse(server.Host)
	if err != nil {
		t.Fatal(err)
	}
	w := &weather{random: rand.New(rand.NewPCG(seed, 0)), open: map[net.Conn]bool{}}
	w.proxy = &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Authorization", "Bearer "+server.BearerToken) // clients send no token where there is no TLS
	}}
	w.proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	w.proxy.ErrorHandler = func(out http.ResponseWriter, _ *http.Request, _ error) {
		out.WriteHeader(http.StatusBadGateway)
	}
	w.proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Query().Has("watch") {
			r.Body = slow{r.Body, w}
		}
		return nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.url = "http://" + l.Addr().String()
	// The proxy panics with ErrAbortHandler when a connection goes; the server takes that as it is meant.
	s := &http.Server{Handler: w.proxy, ConnState: w.track, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		_ = s.Serve(l)
		close(ended)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
		w.proxy.Transport.(*http.Transport).CloseIdleConnections()
	})
	return w
}

// track keeps the connections, and closes new ones while the server is down.
func (w *weather) track(c net.Conn, s http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch s {
	case http.StateNew:
		w.open[c] = true
		if w.down {
			_ = c.Close()
		}
	case http.StateClosed, http.StateHijacked:
		delete(w.open, c)
	}
}

// outage is the server going away, or coming back.
func (w *weather) outage(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	for c := range w.open {
		_ = c.Close()
	}
}

// lag sets how long pieces of watches wait at most.
func (w *weather) lag(most time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = most
}

func (w *weather) wait() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.delay == 0 {
		return 0
	}
	return time.Duration(w.random.Int64N(int64(w.delay)))
}

// slow is the body of a watch.
type slow struct {
	io.ReadCloser
	weather *weather
}

func (s slow) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	time.Sleep(s.weather.wait())
	return n, err
}

// kubeconfig leads through the proxy.
func (w *weather) kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: w
clusters: [{name: w, cluster: {server: %q}}]
contexts: [{name: w, context: {cluster: w, user: w}}]
users: [{name: w, user: {}}]
`, w.url)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBadWeather rolls a Deployment out again and again while the manager sees everything late, loses the API server
// and finds it again, and is killed and started anew: at no moment of the API server's history are there more
// replicas asked for than maxSurge allows, or fewer available than maxUnavailable does, and every rollout comes to
// the same end.
func TestBadWeather(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	w := newWeather(t, adminConfig(t, plane), seed)
	path := w.kubeconfig(t)
	k := newKiller(t)
	p := startManager(t, path, killFlags...)
	k.create()
	eventually(t, k.complete)
	for range killHistory + 1 {
		k.rollOut()
		eventually(t, k.complete)
	}
	want := k.settled()

	for round := range 3 {
		w.lag(time.Duration(round+1) * 150 * time.Millisecond)
		k.rollOut()
		time.Sleep(time.Second)
		w.outage(true)
		time.Sleep(time.Second)
		w.outage(false)
		if round == 1 {
			k.kill(p)
			p = startManager(t, path, killFlags...)
		}
		eventually(t, k.complete)
		eventually(t, func() string {
			if got := k.outcome(); got != want {
				return fmt.Sprintf("the outcome is\n%s\nwant\n%s", got, want)
			}
			return ""
		})
		k.replay()
	}
	t.Logf("%d rollouts: %d pods created, at most %d replicas asked for (%d allowed), at least %d available (%d "+
		"required)",
		k.rollouts, k.seen.created, k.seen.mostAsked, killReplicas+killSurge, k.seen.leastAvailable,
		killReplicas-killAbsent)
	k.remove()
	eventually(t, k.gone)
}
