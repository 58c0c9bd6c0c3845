package multicluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/ownwrites"
	"github.com/flyball-dev/flyball/internal/redirect"
	"github.com/flyball-dev/flyball/manager/leader"
)

// connect makes the clients of a cluster. It sends no request.
func (m *Manager) connect(inc *incarnation, a *Announcement) (err error) {
	config := m.configOf(inc, a.Config)
	if inc.record, err = ownwrites.New(config); err != nil {
		return err
	}
	config.Wrap(inc.record.Wrap)
	f := m.options.Informers
	f.Scheme, f.Mapper = m.scheme, m.options.Mapper
	if a.Namespace != "" {
		f.Namespaces = []string{a.Namespace}
	}
	informers, err := informer.NewFactory(config, f)
	if err != nil {
		return err
	}
	c, err := client.New(config,
		client.Options{Informers: informers, Mapper: m.options.Mapper, Caches: m.options.Caches})
	if err != nil {
		return err
	}
	cluster := &Cluster{Cluster: c, config: config, informers: informers, incarnation: inc}
	cluster.info.Store(&ClusterInfo{Name: a.Name, Identity: a.Identity, Labels: a.Labels})
	inc.cluster = cluster
	inc.record.Bound(askTimeout, func() bool { return inc.unreachableFor(m.options.JoinTimeout) })
	return nil
}

// askTimeout bounds each question of RunUntilIdle to a cluster about the effect of a write.
const askTimeout = time.Second

// configOf returns the config of all clients of a cluster. They share one rate limit and two fences.
func (m *Manager) configOf(inc *incarnation, given *rest.Config) *rest.Config {
	config := rest.CopyConfig(given)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS, config.Burst = m.options.QPS, m.options.Burst
	}
	if config.QPS > 0 && config.RateLimiter == nil {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, max(config.Burst, 1))
	}
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	config.Wrap(inc.fence)
	config.Wrap(leader.Fence)
	config.Wrap(redirect.Refuse)
	return config
}

// prober sends the requests that check whether a cluster answers.
type prober struct {
	http    *http.Client
	version *url.URL
}

func newProber(config *rest.Config) (*prober, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("host %q: %w", config.Host, err)
	}
	return &prober{http: c, version: base.JoinPath("version")}, nil
}

// probe asks for the version, which every user may read. Any answer will do, except one that says that the server
// cannot work or does not accept the credentials.
func (p *prober) probe(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.version.String(), nil)
	if err != nil {
		return err
	}
	answer, err := p.http.Do(r)
	if err != nil {
		return p.explain(ctx, err)
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if answer.StatusCode == http.StatusUnauthorized || answer.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%s answers %s", p.name(), answer.Status)
	}
	return nil
}

// explain returns err in one line, without the request's path and the layers below.
func (p *prober) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s does not answer in time", p.name())
	}
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return fmt.Errorf("cannot reach %s: %w", p.name(), err)
}

func (p *prober) name() string { return p.version.Scheme + "://" + p.version.Host }

// close closes the idle connections.
func (p *prober) close() {
	for t := p.http.Transport; t != nil; {
		if c, ok := t.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
			return
		}
		w, ok := t.(utilnet.RoundTripperWrapper)
		if !ok {
			return
		}
		t = w.WrappedRoundTripper()
	}
}

// backoff are the pauses between attempts. The zero value is not usable.
type backoff struct {
	informer.Backoff
	next time.Duration
	// until is when the last pause was to end.
	until time.Time
}

func newBackoff(b informer.Backoff) *backoff {
	if b.Rand == nil {
		b.Rand = rand.Float64
	}
	return &backoff{Backoff: b, next: b.Min}
}

// wait sleeps before the next attempt and reports whether ctx allows one. After an attempt that lasted long, the pauses
// start from the shortest again.
func (r *backoff) wait(ctx context.Context) bool {
	if !r.until.IsZero() && time.Since(r.until) > 2*r.Max {
		r.next = r.Min
	}
	wait := time.Duration(float64(r.next) * (1 + r.Rand()))
	r.until = time.Now().Add(wait)
	r.next = min(2*r.next, r.Max)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// caches are the goroutines of a cluster: its informers, and the sender of events once there are any. They run until
// the cluster has drained, because reconciles that finish meanwhile still read and record events.
type caches struct {
	informers *informer.Factory
	stop      context.CancelFunc

	mu     sync.Mutex
	closed bool
	// stopSender stops the sender of events and waits until it has sent the rest. It is nil until somebody records an
	// event.
	stopSender func()
}

// startCaches runs the informers of a cluster until end is called.
func startCaches(life context.Context, c *Cluster) *caches {
	own, stop := context.WithCancel(context.WithoutCancel(life))
	k := &caches{informers: c.informers, stop: stop}
	c.informers.Start(own) // It does nothing if they were run before.
	c.recorders.start = func() func(string) events.Recorder { return k.startEvents(own, c) }
	return k
}

// startEvents starts the sender of events.
func (k *caches) startEvents(ctx context.Context, c *Cluster) func(component string) events.Recorder {
	sender, err := events.New(c.config, events.Options{Scheme: c.Scheme()})
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil || k.closed {
		klog.FromContext(ctx).Info("Cannot record events in a cluster; dropping them", "err", err)
		return func(string) events.Recorder { return discardEvents{} }
	}
	own, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := sender.Run(own); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot send events of a cluster")
		}
	})
	k.stopSender = func() { stop(); running.Wait() }
	return sender.Recorder
}

// endSender sends the events that are left. Later ones are lost.
func (k *caches) endSender() {
	k.mu.Lock()
	end := k.stopSender
	k.stopSender, k.closed = nil, true
	k.mu.Unlock()
	if end != nil {
		end()
	}
}

// end stops everything, and returns when all has stopped.
func (k *caches) end() {
	k.endSender()
	k.stop()
	k.informers.Shutdown()
}

// discardEvents drops the events of a cluster that has departed.
type discardEvents struct{}

// Event implements events.Recorder.
func (discardEvents) Event(runtime.Object, string, string, string) {}

// Eventf implements events.Recorder.
func (discardEvents) Eventf(runtime.Object, string, string, string, ...any) {}

// AnnotatedEventf implements events.Recorder.
func (discardEvents) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {
}
