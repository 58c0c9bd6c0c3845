package multicluster

import (
	"cmp"
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
	"github.com/flyball-dev/flyball/internal/redirect"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/writes"
)

// connect makes the clients of a cluster. It sends no request.
func (m *Manager) connect(inc *incarnation, a *Announcement) (err error) {
	config := m.configOf(inc, a.Config)
	if inc.record, err = writes.New(config); err != nil {
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
	inc.record.AskWithin(writeCheckTimeout, func() bool { return inc.unreachableFor(m.options.JoinTimeout) })
	return nil
}

// writeCheckTimeout bounds each request that RunUntilIdle sends to a cluster to learn the effect of a write.
const writeCheckTimeout = time.Second

// configOf returns the config for all clients of a cluster, so that they share one rate limit and the fences of writes.
func (m *Manager) configOf(inc *incarnation, given *rest.Config) *rest.Config {
	config := rest.CopyConfig(given)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS, config.Burst = m.options.QPS, m.options.Burst
	}
	if config.QPS > 0 && config.RateLimiter == nil {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, max(config.Burst, 1))
	}
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	config.Wrap(inc.fence)
	config.Wrap(leader.Fence)
	config.Wrap(redirect.Refuse)
	return config
}

// prober checks whether a cluster answers.
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

// probe requests the server's version, which every user may read. Any answer means that the cluster can be used, except
// Unauthorized and errors of the server.
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

// explain shortens the error of a request to what matters for people: the server's address and the last cause.
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

// backoff waits between attempts. [newBackoff] makes one.
type backoff struct {
	informer.Backoff
	next time.Duration
	// until is when the last pause ended, or will end.
	until time.Time
}

func newBackoff(b informer.Backoff) *backoff {
	if b.Rand == nil {
		b.Rand = rand.Float64
	}
	return &backoff{Backoff: b, next: b.Min}
}

// wait sleeps before the next attempt. It returns false if ctx is done first. After an attempt that lasted long, the
// next pause is the shortest again.
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

// caches runs the goroutines of a cluster: its informers and, once there are events, their sender. They run until the
// cluster has drained, because the reconciles that finish while it drains still read and record events.
type caches struct {
	informers *informer.Factory
	stop      context.CancelFunc

	mu     sync.Mutex
	closed bool
	// stopSender stops the sender of events after it has sent the rest; nil until an event is recorded.
	stopSender func()
}

// startCaches runs the informers of a cluster until end is called.
func startCaches(life context.Context, c *Cluster) *caches {
	own, stop := context.WithCancel(context.WithoutCancel(life))
	k := &caches{informers: c.informers, stop: stop}
	c.informers.Start(own)
	c.recorders.start = func() func(string) events.Recorder { return k.startEvents(own, c) }
	return k
}

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

// endSender sends the remaining events and stops the sender. Events that are recorded later are lost.
func (k *caches) endSender() {
	k.mu.Lock()
	end := k.stopSender
	k.stopSender, k.closed = nil, true
	k.mu.Unlock()
	if end != nil {
		end()
	}
}

// end stops the informers and the sender, and returns when they have stopped.
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
