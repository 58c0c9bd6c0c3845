package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/groupclient"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/internal/redirect"
	"github.com/flyball-dev/flyball/manager/internal/rotation"
	"github.com/flyball-dev/flyball/manager/internal/serving"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
	"github.com/flyball-dev/flyball/writes"
)

// Options configures a [Manager]. The zero value runs without leader election and opens no port.
type Options struct {
	// HealthAddr is the address that serves /livez, /healthz and /readyz, for example "127.0.0.1:10257". Empty or "0"
	// means none.
	HealthAddr string
	// MetricsAddr is the address that serves /metrics. Empty or "0" means none. It may equal HealthAddr.
	MetricsAddr string
	// DebugAddr is the address that serves profiles (/debug/pprof/) and /configz. Empty or "0" means none. It may equal
	// the others.
	DebugAddr string
	// Serving configures the listeners.
	Serving Serving
	// Webhook configures the server of webhooks, which runs if a webhook is registered: by NewWebhookManagedBy of
	// package builder, or with GetWebhookServer.
	Webhook webhook.Options
	// ServesConversion reports whether the program serves a conversion webhook without GetWebhookServer. Nil means that
	// it does not. See [Manager.Ready].
	ServesConversion func() bool
	// Configz is served at /configz as JSON. It must not contain secrets.
	Configz any
	// Metrics collects the metrics and serves them. Nil means that nothing is measured; MetricsAddr must then be off.
	Metrics Metrics
	// LeaderElection makes runnables wait for a lease.
	LeaderElection LeaderElection
	// GracefulTimeout is how long work in flight may continue after the stop. Zero means 10 s; negative means not at
	// all. The process ends at most 20 s after that, so a Pod's terminationGracePeriodSeconds must be longer.
	GracefulTimeout time.Duration
	// ServerTimeout is how long Run waits for the first answer of the API server. Zero means 10 s; negative means that
	// Run does not wait.
	ServerTimeout time.Duration
	// StuckAfter is how long an informer without an error may make no progress before /readyz reports it. The cause may
	// be a handler or transform that does not return, or a server that sends nothing, not even the end of a watch. Zero
	// means 15 min; negative means never.
	StuckAfter time.Duration
	// Scheme maps Go types to kinds, for the caches, the client and events. Nil means client-go's, which has the
	// built-in types.
	Scheme *runtime.Scheme
	// Client configures the client that GetClient returns: the kinds that it reads without a cache, how long a read
	// waits for an own write, and the field owner of writes. Its Informers, Caches and CacheFor must not be set,
	// because the client reads from the manager's informers, which Caches restricts.
	Client client.Options
	// Informers configures the informers.
	Informers informer.FactoryOptions
	// Caches restricts the caches of some kinds by namespace, selector and transform. It applies to GetClient and to
	// the watches of controllers that package builder makes. Other kinds are cached as Informers describes.
	Caches []client.CacheOf
	// Events configures the event sender.
	Events events.Options
	// Inspect records the way of objects through the informers, controllers and the client, and shows it at DebugAddr,
	// below /inspect/. Nil means that nothing is recorded. Package inspect implements it.
	Inspect Inspector
}

// Inspector records the work of a [Manager].
type Inspector interface {
	// Context returns a context whose informers, controllers and clients report to the Inspector.
	Context(ctx context.Context) context.Context
	// Handler returns the handler for the paths below /inspect/.
	Handler(m *Manager) http.Handler
}

const (
	defaultGracefulTimeout = 10 * time.Second
	defaultServerTimeout   = 10 * time.Second
	off                    = "0"
)

func (o Options) withDefaults() Options {
	o.GracefulTimeout = cmp.Or(o.GracefulTimeout, defaultGracefulTimeout)
	o.ServerTimeout = cmp.Or(o.ServerTimeout, defaultServerTimeout)
	o.StuckAfter = cmp.Or(o.StuckAfter, defaultStuckAfter)
	for _, addr := range []*string{&o.HealthAddr, &o.MetricsAddr, &o.DebugAddr} {
		if *addr == off {
			*addr = ""
		}
	}
	o.Informers.Scheme = cmp.Or(o.Informers.Scheme, o.Scheme)
	o.Events.Scheme = cmp.Or(o.Events.Scheme, o.Informers.Scheme)
	o.LeaderElection = o.LeaderElection.withDefaults()
	return o
}

// Metrics is the metrics system of a [Manager]; package manager/metrics implements it for Prometheus. Only requests are
// pushed. All other values are pulled: the functions that the methods receive are cheap and may be called at any time.
type Metrics interface {
	http.Handler // serves /metrics
	workqueue.MetricsProvider
	// Informers reports the informers, by resource.
	Informers(stats func() map[string]informer.Stats)
	// Controller reports one controller. It replaces an earlier controller of the same name. Forget stops reporting it.
	Controller(name string, stats func() reconcile.Stats)
	Forget(name string)
	// Client reports what read-your-own-writes costs the manager's client.
	Client(stats func() client.Stats)
	// Events reports the event sender.
	Events(stats func() events.Stats)
	// Leader reports the state of this process in the leader election.
	Leader(lease string, status func() leader.Status)
	// Request reports one request to the API server when its response begins. code is 0 if there was no response.
	Request(method, host string, code int, took time.Duration)
	// Throttled reports how long the client's rate limit delayed a request, usually not at all.
	Throttled(host string, waited time.Duration)
}

// Manager runs controllers and the caches, clients and servers that they share. See the package comment.
type Manager struct {
	options   Options
	config    *rest.Config
	discovery discovery.DiscoveryInterface
	informers *informer.Factory
	cluster   *client.Cluster
	progress  progress
	events    *events.Broadcaster
	mapper    *reloadingMapper
	election  *election // nil without leader election
	runnables *group
	state     state
	// live and ready are the program's own checks.
	live, ready probes
	// elected is closed when the runnables that need leadership have been started; elect closes it once.
	elected chan struct{}
	elect   sync.Once
	// record has the writes of this manager's clients, and writes those that RunUntilIdle waits for.
	record       *writes.Record
	writes       writes.Awaited
	http         *serving.Server
	httpClient   *http.Client // for others; with the configuration of the manager's clients
	hooks        *webhook.Server
	certificates *rotation.CertificateStore // nil if the certificate of webhooks is in files
	// guard wraps a handler with the authorization that Options.Serving requires.
	guard func(http.Handler) http.Handler
}

// New returns a manager for the cluster that config names. It starts no goroutine and sends no request.
//
// Errors: options that contradict each other; a config from which no client can be made.
func New(config *rest.Config, o Options) (*Manager, error) {
	if config == nil {
		return nil, errors.New(
			"manager: the config is nil: GetConfig of manager/ctrl makes one of a kubeconfig or of the Pod's service " +
				"account",
		)
	}
	if o.Metrics != nil && misuse.IsNil(o.Metrics) {
		return nil, fmt.Errorf("manager: Options.Metrics is a nil %T: set it to nil or to a registry", o.Metrics)
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
	if err := errors.Join(o.validateServing(), o.validateClient()); err != nil {
		return nil, err
	}
	m := &Manager{options: o, config: clientConfig(config), runnables: &group{}, elected: make(chan struct{})}
	var err error
	if m.record, err = writes.New(m.config); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	m.config.Wrap(m.record.Wrap)
	m.config.Wrap(redirect.Refuse)
	oneClient := func(c *rest.Config) *rest.Config { return c }
	if o.Metrics != nil {
		oneClient = func(c *rest.Config) *rest.Config { return measureThrottling(c, o.Metrics.Throttled) }
	}
	if m.httpClient, err = rest.HTTPClientFor(m.config); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	if m.discovery, err = groupclient.Discovery(oneClient(m.config)); err != nil {
		return nil, fmt.Errorf("manager: client of discovery: %w", err)
	}
	if m.informers, err = informer.NewFactory(config, o.Informers); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	if m.cluster, err = newCluster(oneClient(m.config), m.informers, o); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	m.mapper = &reloadingMapper{discovery: m.discovery}
	sender := oneClient(rest.AddUserAgent(clientConfig(config), "events"))
	if m.events, err = events.New(sender, o.Events); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	if o.LeaderElection.Enabled {
		if m.election, err = newElection(config, o.LeaderElection,
			m.GetEventRecorderFor(o.LeaderElection.Name)); err != nil {
			return nil, fmt.Errorf("manager: %w", err)
		}
	}
	if m.http, err = newServer(m, config); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	m.connectMetrics()
	if err := m.addWebhooks(); err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	return m, nil
}

// The default limits on requests, for a config that has none: those of kube-controller-manager's client.
//
// Source: kube-controller-manager v1.37.2, --kube-api-qps and --kube-api-burst.
const (
	defaultQPS   = 20
	defaultBurst = 30
)

// clientConfig returns a copy of config with the manager's defaults: protobuf, kube-controller-manager's limits, and
// the fence.
func clientConfig(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	if own.ContentType == "" && own.AcceptContentTypes == "" {
		own.ContentType = runtime.ContentTypeProtobuf
		own.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	if own.QPS == 0 && own.RateLimiter == nil {
		own.QPS, own.Burst = defaultQPS, defaultBurst
	}
	own.UserAgent = cmp.Or(own.UserAgent, rest.DefaultKubernetesUserAgent())
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

// Add adds a runnable. If the manager runs already, the runnable starts at once, otherwise when Run is called. A
// runnable that needs leadership starts when this process leads.
//
// Errors: a name that is taken; a manager that is stopping or has stopped; with LeaderElection.Survive, a runnable that
// needs leadership and is not a [Rebuilder].
func (m *Manager) Add(r Runnable) error {
	if err := misuse.Nil("the runnable", r); err != nil {
		return fmt.Errorf("manager: add: %w", err)
	}
	e := newEntry(r)
	if e.name == "" {
		return fmt.Errorf("manager: add: the runnable %T has no name, which logs, health and Remove need", r)
	}
	if _, ok := r.(Rebuilder); !ok && e.needs == withLeader && m.survives() {
		return fmt.Errorf(
			"manager: add %s: with LeaderElection.Survive it must be possible to build it again: give Complete of "+
				"package builder the reconciler, or wrap its constructor by manager.Rebuilt", e.name,
		)
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

// Informers returns the caches that the whole process shares. They run while [Manager.Run] runs.
func (m *Manager) Informers() *informer.Factory { return m.informers }

// GetConfig returns a copy of the configuration of the manager's clients. Other clients can be made from it, such as
// client-go's clientset by kubernetes.NewForConfig. If a runnable that needs leadership writes with its context through
// such a client, the write fails once another process could have acquired the lease.
func (m *Manager) GetConfig() *rest.Config { return rest.CopyConfig(m.config) }

// GetHTTPClient returns an HTTP client for the API server, with the configuration of GetConfig.
func (m *Manager) GetHTTPClient() *http.Client { return m.httpClient }

// Elected returns a channel that is closed when the runnables that need leadership have been started: when this process
// leads for the first time or, without leader election, when the manager runs.
func (m *Manager) Elected() <-chan struct{} { return m.elected }

// GetScheme returns the scheme, which maps Go types to kinds.
func (m *Manager) GetScheme() *runtime.Scheme {
	return cmp.Or(m.options.Informers.Scheme, scheme.Scheme)
}

// GetEventRecorderFor returns a recorder of events for the named component.
func (m *Manager) GetEventRecorderFor(component string) events.Recorder {
	return m.events.Recorder(component)
}

// GetEventRecorder returns a recorder of events with an action and a related object, for the named controller.
func (m *Manager) GetEventRecorder(controller string) events.EventRecorder {
	return m.events.EventRecorder(controller)
}

// QueueMetrics returns the metrics provider for the queues of controllers, or nil if nothing is measured.
func (m *Manager) QueueMetrics() workqueue.MetricsProvider {
	if m.options.Metrics == nil {
		return nil
	}
	return m.options.Metrics
}

// Start is [Manager.Run], by the name that controller-runtime gives it.
func (m *Manager) Start(ctx context.Context) error { return m.Run(ctx) }

// Run runs the manager until ctx is done, and then stops it in order. It may be called once. A manager without
// runnables serves its caches, and runs the runnables that are added later. Without runnables and caches it logs that.
//
// Errors: nil if ctx ended and all work was finished; otherwise why the manager stopped (the server did not answer, a
// runnable failed, the lease was lost), what was left undone (an [UndoneError]), or both.
func (m *Manager) Run(ctx context.Context) error {
	if !m.state.begin() {
		return errors.New("manager: Run called twice")
	}
	defer m.state.set(ended)
	defer m.runnables.close()
	if m.options.Inspect != nil {
		ctx = m.options.Inspect.Context(ctx)
	}
	if err := m.http.Listen(); err != nil {
		return err
	}
	served := startPart(context.WithoutCancel(ctx), "servers", m.http.Run)
	hooks := startPart(context.WithoutCancel(ctx), "webhooks", m.hooks.Run)
	if err := m.awaitServer(ctx); err != nil || ctx.Err() != nil { // or stopped before the server answered
		return errors.Join(err, m.endWebhooks(hooks), served.end(partTimeout))
	}
	undone, cause := m.runParts(ctx, served, hooks)
	if err := served.end(partTimeout); err != nil && !errors.Is(cause, err) {
		undone = append(undone, err)
	}
	if len(undone) > 0 {
		return joinErrors(cause, &UndoneError{Left: undone})
	}
	return cause
}
