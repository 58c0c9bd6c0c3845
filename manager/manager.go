package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/internal/ownwrites"
	"github.com/flyball-dev/flyball/manager/internal/serving"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// Options configures a [Manager]. The zero value runs without leader election and opens no port.
type Options struct {
	// HealthAddr is where /livez, /healthz and /readyz are served, "127.0.0.1:10257". Empty or "0": nowhere.
	HealthAddr string
	// MetricsAddr is where /metrics is served. Empty or "0": nowhere. It may equal HealthAddr.
	MetricsAddr string
	// DebugAddr is where profiles (/debug/pprof/) and /configz are served. Empty or "0": nowhere. It may equal the others.
	DebugAddr string
	// Serving says how the listeners serve.
	Serving Serving
	// Configz is shown at /configz, as JSON. It must not hold secrets.
	Configz any
	// Metrics receives what is measured and serves it. Nil: nothing is measured, and MetricsAddr must be off.
	Metrics Metrics
	// LeaderElection makes runnables wait for a lease.
	LeaderElection LeaderElection
	// GracefulTimeout is how long work in flight may go on after the stop. Zero means 10 s; negative: not at all. The end of
	// the whole process comes at most 15 s later, which a Pod's terminationGracePeriodSeconds should allow for.
	GracefulTimeout time.Duration
	// ServerTimeout is how long Run waits for the API server to answer for the first time. Zero means 10 s; negative: it
	// is not asked.
	ServerTimeout time.Duration
	// StuckAfter is how long an informer may do nothing, although it says that it is well, before readiness names it: a handler
	// or transform that does not return, a server that does not even end a watch. Zero means 15 min; negative: for ever.
	StuckAfter time.Duration
	// Informers configures the informers.
	Informers informer.FactoryOptions
	// Caches restricts what is cached of some kinds, by namespaces, selectors and a transform: for Cluster, and for what
	// controllers made by package builder watch. Kinds not mentioned are cached as Informers says.
	Caches []client.CacheOf
	// Events configures the event sender.
	Events events.Options
}

const (
	defaultGracefulTimeout = 10 * time.Second
	defaultServerTimeout   = 10 * time.Second
	off                    = "0"
)

func (o Options) withDefaults() Options {
	if o.GracefulTimeout == 0 {
		o.GracefulTimeout = defaultGracefulTimeout
	}
	if o.ServerTimeout == 0 {
		o.ServerTimeout = defaultServerTimeout
	}
	if o.StuckAfter == 0 {
		o.StuckAfter = defaultStuckAfter
	}
	if o.HealthAddr == off {
		o.HealthAddr = ""
	}
	if o.MetricsAddr == off {
		o.MetricsAddr = ""
	}
	if o.DebugAddr == off {
		o.DebugAddr = ""
	}
	if o.Events.Scheme == nil {
		o.Events.Scheme = o.Informers.Scheme
	}
	o.LeaderElection = o.LeaderElection.withDefaults()
	return o
}

// Metrics is the metrics system behind a [Manager]; package manager/metrics has one for Prometheus. Everything but requests is
// pulled: the functions may be called at any time and cost little.
type Metrics interface {
	http.Handler // serves /metrics
	workqueue.MetricsProvider
	// Informers reports the informers, by resource.
	Informers(stats func() map[string]informer.Stats)
	// Controller reports one controller; a later one takes the place of an earlier of the same name. Forget ends that.
	Controller(name string, stats func() reconcile.Stats)
	Forget(name string)
	// Client reports what it took the manager's client to read its own writes.
	Client(stats func() client.Stats)
	// Events reports the event sender.
	Events(stats func() events.Stats)
	// Leader reports how this process stands in the election.
	Leader(lease string, status func() leader.Status)
	// Request reports one request to the API server, when its answer begins. code is 0 when there was none.
	Request(method, host string, code int, took time.Duration)
	// Throttled reports how long the limit on its client's requests held one back, mostly not at all.
	Throttled(host string, waited time.Duration)
}

// Manager runs controllers and what they share. See the package comment.
type Manager struct {
	options   Options
	config    *rest.Config
	client    kubernetes.Interface
	informers *informer.Factory
	cluster   *client.Cluster
	progress  progress
	events    *events.Broadcaster
	mapper    *reloading
	election  *election // nil without leader election
	runnables *group
	state     state
	// writes are those of this manager's clients, and books those that RunUntilIdle waits for.
	writes *ownwrites.Log
	books  ownwrites.Books
	http   *serving.Server
}

// New returns a manager for the cluster that config names. It starts nothing and asks nothing of the server.
//
// Errors: options that do not fit together, a config that no client can be made of.
func New(config *rest.Config, o Options) (*Manager, error) {
	if config == nil {
		return nil, errors.New("manager: the config is nil: GetConfig of manager/ctrl makes one of a kubeconfig or of the Pod's service account")
	}
	if o.Metrics != nil && misuse.IsNil(o.Metrics) {
		return nil, fmt.Errorf("manager: Options.Metrics is a nil %T: leave it out, or give one", o.Metrics)
	}
	o = o.withDefaults()
	config = rest.CopyConfig(config)
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandlerWithContext = &warnings{}
	}
	if o.Metrics != nil {
		measureRequests(config, o.Metrics.Request)
	}
	if o.MetricsAddr != "" && o.Metrics == nil {
		return nil, errors.New("manager: MetricsAddr is set but Metrics is nil")
	}
	if err := o.validateServing(); err != nil {
		return nil, err
	}
	m := &Manager{options: o, config: clientConfig(config), runnables: &group{}}
	var err error
	if m.writes, err = ownwrites.New(m.config); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	m.config.Wrap(m.writes.Wrap)
	oneClient := func(c *rest.Config) *rest.Config { return c }
	if o.Metrics != nil {
		oneClient = func(c *rest.Config) *rest.Config { return measureThrottling(c, o.Metrics.Throttled) }
	}
	if m.client, err = kubernetes.NewForConfig(oneClient(m.config)); err != nil {
		return nil, fmt.Errorf("manager: client: %w", err)
	}
	if m.informers, err = informer.NewFactory(config, o.Informers); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	m.writes.Connect(ownwrites.Peer{Caches: m.informers, Client: func() (rest.Interface, error) { return m.client.CoreV1().RESTClient(), nil }})
	if m.cluster, err = newCluster(oneClient(m.config), m.informers, o); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	m.mapper = &reloading{discovery: m.client.Discovery()}
	sender, err := kubernetes.NewForConfig(oneClient(rest.AddUserAgent(clientConfig(config), "events")))
	if err != nil {
		return nil, fmt.Errorf("manager: client of events: %w", err)
	}
	m.events = events.New(sender.CoreV1(), o.Events)
	if o.LeaderElection.Enabled {
		if m.election, err = newElection(config, o.LeaderElection, m.Recorder(o.LeaderElection.Name)); err != nil {
			return nil, fmt.Errorf("manager: %w", err)
		}
	}
	if m.http, err = newServer(m, config); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	m.connectMetrics()
	return m, nil
}

// The limits on requests of kube-controller-manager's client, where config has none.
//
// Source: kube-controller-manager v1.37.1, --kube-api-qps and --kube-api-burst.
const (
	defaultQPS   = 20
	defaultBurst = 30
)

// clientConfig is config with the manager's defaults: protobuf, kube-controller-manager's limits, and the fence.
func clientConfig(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	if own.ContentType == "" {
		own.ContentType = runtime.ContentTypeProtobuf
		own.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	if own.QPS == 0 && own.RateLimiter == nil {
		own.QPS, own.Burst = defaultQPS, defaultBurst
	}
	if own.UserAgent == "" {
		own.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	own.Wrap(leader.Fence)
	return own
}

func (m *Manager) connectMetrics() {
	metrics := m.options.Metrics
	if metrics == nil {
		return
	}
	metrics.Informers(m.informers.Stats)
	metrics.Client(m.cluster.Stats)
	metrics.Events(m.events.Stats)
	if m.election != nil {
		metrics.Leader(m.options.LeaderElection.Name, m.election.elector.Status)
	}
}

// Add gives the manager something to run. Before Run it waits; while Run it starts at once, or with the leadership.
//
// Errors: a name that is taken; a manager that is stopping or has stopped; with LeaderElection.Survive, a runnable that needs
// leadership and is no [Rebuilder].
func (m *Manager) Add(r Runnable) error {
	if err := misuse.Nil("the runnable", r); err != nil {
		return fmt.Errorf("manager: add: %w", err)
	}
	e := newEntry(r)
	if e.name == "" {
		return fmt.Errorf("manager: add: Name of the runnable %T is empty: logs, health and Remove name it by that", r)
	}
	if _, ok := r.(Rebuilder); !ok && e.needs == withLeader && m.survives() {
		return fmt.Errorf("manager: add %s: with LeaderElection.Survive it must be possible to build it again: give Complete of package builder the reconciler, or wrap its constructor by manager.Rebuilt", e.name)
	}
	if err := m.runnables.add(e); err != nil {
		return fmt.Errorf("manager: add %s: %w", e.name, err)
	}
	m.measure(e)
	return nil
}

// measure connects a controller to the metrics.
func (m *Manager) measure(e *entry) {
	if c, ok := as[interface{ Stats() reconcile.Stats }](e.runnable); ok && m.options.Metrics != nil {
		m.options.Metrics.Controller(e.name, c.Stats)
	}
}

// Informers are the caches that everything in this process shares. They run while [Manager.Run] does.
func (m *Manager) Informers() *informer.Factory { return m.informers }

// Client reads from and writes to the API server directly. A write made with the context of a runnable that needs leadership
// fails when the lease could have passed to another process.
func (m *Manager) Client() kubernetes.Interface { return m.client }

// Config is what Client was made of, for further clients of one's own.
func (m *Manager) Config() *rest.Config { return rest.CopyConfig(m.config) }

// Scheme tells the kinds of Go types.
func (m *Manager) Scheme() *runtime.Scheme {
	if m.options.Informers.Scheme != nil {
		return m.options.Informers.Scheme
	}
	return scheme.Scheme
}

// Recorder records events in the name of a component.
func (m *Manager) Recorder(component string) events.Recorder { return m.events.Recorder(component) }

// QueueMetrics is what the queues of controllers report to; nil when nothing is measured.
func (m *Manager) QueueMetrics() workqueue.MetricsProvider {
	if m.options.Metrics == nil {
		return nil
	}
	return m.options.Metrics
}

// Run runs everything until ctx is done, and stops it in order. It may be called once. A manager without runnables serves its
// caches, and those that Add gives it later; one that has neither says so in the log.
//
// Errors: nil after a stop in which everything was finished; else why the manager stopped (the server did not answer, a
// runnable failed, the lease was lost), what was left undone (an [UndoneError]), or both.
func (m *Manager) Run(ctx context.Context) error {
	if !m.state.begin() {
		return errors.New("manager: Run called twice")
	}
	defer m.state.set(ended)
	defer m.runnables.close()
	if err := m.http.Listen(); err != nil {
		return err
	}
	served := startPart(ctx, "servers", m.http.Run)
	if err := m.awaitServer(ctx); err != nil {
		return errors.Join(err, served.end(partTimeout))
	}
	if ctx.Err() != nil { // stopped while the server was away
		return served.end(partTimeout)
	}
	undone, cause := m.runParts(ctx, served)
	if err := served.end(partTimeout); err != nil && !errors.Is(cause, err) {
		undone = append(undone, err)
	}
	if len(undone) > 0 {
		return joinErrors(cause, &UndoneError{Left: undone})
	}
	return cause
}
