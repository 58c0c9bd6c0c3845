package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	own "github.com/flyball-dev/flyball/manager"
)

// Manager is controller-runtime's Manager over Flyball's: an unchanged SetupWithManager gets its two-step stop, in which what is in
// flight ends in peace; fenced writes; and [Manager.RunUntilIdle]. It is made by [NewManager].
//
// Controllers of reconcile.Request work with Flyball's queue. Others run as they are, and are not seen by RunUntilIdle.
type Manager struct {
	core   *own.Manager
	o      manager.Options
	config *rest.Config
	http   *http.Client
	cache  *Cache
	client client.Client
	reader client.Reader
	// metrics is nil when the address is "0".
	metrics  server.Server
	registry conversion.Registry
	elected  chan struct{}

	mu sync.Mutex
	// webhooks is made when it is asked for.
	webhooks      webhook.Server
	webhooksAdded bool
	names         map[string]int
	live, ready   map[string]healthz.Checker
}

var _ manager.Manager = (*Manager)(nil)

// NewManager returns a manager for the cluster that config names. It takes controller-runtime's options.
//
// Errors: what own caches and a lock of one's own are set by (NewCache, Cache.NewInformer, LeaderElectionConfig,
// LeaderElectionResourceLock, LeaderElectionResourceLockInterface, LeaderElectionLabels, EventBroadcaster) is refused: those are Flyball's
// here. With LeaderElection there must be an ID, and a namespace where the process does not run in one.
func NewManager(config *rest.Config, o manager.Options) (*Manager, error) {
	if config == nil {
		return nil, fmt.Errorf("new manager: %w", errNoConfig)
	}
	if err := refuse(o); err != nil {
		return nil, err
	}
	if err := defaultLease(&o); err != nil {
		return nil, fmt.Errorf("new manager: %w", err)
	}
	if o.Logger.GetSink() == nil {
		o.Logger = ctrllog.Log
	}
	if o.Controller.Logger.GetSink() == nil {
		o.Controller.Logger = o.Logger
	}
	if o.Controller.EnableWarmup == nil {
		o.Controller.EnableWarmup = &o.LeaderElection // Followers keep what their controllers watch warm.
	}
	o.Cache.Scheme = firstOf(o.Cache.Scheme, o.Scheme)
	if o.MapperProvider != nil && o.Cache.Mapper == nil {
		httpClient, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("new manager: %w", err)
		}
		if o.Cache.Mapper, err = o.MapperProvider(config, httpClient); err != nil {
			return nil, fmt.Errorf("new manager: %w", err)
		}
	}
	var err error
	if o.Cache, err = withDefaults(config, o.Cache); err != nil {
		return nil, fmt.Errorf("new manager: %w", err)
	}
	core, err := own.New(config, coreOptions(o))
	if err != nil {
		return nil, err
	}
	m := &Manager{
		core: core, o: o, registry: conversion.NewRegistry(), elected: make(chan struct{}), webhooks: o.WebhookServer,
		names: map[string]int{}, live: map[string]healthz.Checker{}, ready: map[string]healthz.Checker{},
	}
	m.config = core.Config()
	m.config.ContentType, m.config.AcceptContentTypes = config.ContentType, config.AcceptContentTypes // Chosen by kind.
	if m.http, err = rest.HTTPClientFor(m.config); err != nil {
		return nil, fmt.Errorf("new manager: %w", err)
	}
	return m, m.build()
}

func firstOf(a, b *runtime.Scheme) *runtime.Scheme {
	if a != nil {
		return a
	}
	return b
}

// refuse says which options have no meaning here.
func refuse(o manager.Options) error {
	for name, set := range map[string]bool{
		"NewCache": o.NewCache != nil, "Cache.NewInformer": o.Cache.NewInformer != nil,
		"LeaderElectionConfig": o.LeaderElectionConfig != nil, "LeaderElectionResourceLockInterface": o.LeaderElectionResourceLockInterface != nil,
		"LeaderElectionLabels":       len(o.LeaderElectionLabels) > 0,
		"LeaderElectionResourceLock": o.LeaderElectionResourceLock != "" && o.LeaderElectionResourceLock != resourcelock.LeasesResourceLock,
		//lint:ignore SA1019 Refused because it may be set.
		"EventBroadcaster": o.EventBroadcaster != nil,
	} {
		if set {
			return fmt.Errorf("new manager: %s is not for Flyball's manager, which has its own: leave it out, or use controller-runtime's manager with NewCache and NewClient of this package", name)
		}
	}
	return nil
}

// namespaceFile is where a Pod finds its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// defaultLease completes the name of the lease.
//
// Source: controller-runtime v0.25.2 pkg/leaderelection/leader_election.go, NewResourceLock.
func defaultLease(o *manager.Options) error {
	if !o.LeaderElection {
		return nil
	}
	if o.LeaderElectionID == "" {
		return errors.New("LeaderElectionID must be configured")
	}
	if o.LeaderElectionNamespace != "" {
		return nil
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return fmt.Errorf("not running in a Pod, so LeaderElectionNamespace must be configured: %w", err)
	}
	o.LeaderElectionNamespace = strings.TrimSpace(string(namespace))
	return nil
}

// The graceful timeout.
//
// Source: controller-runtime v0.25.2 pkg/manager/manager.go, defaultGracefulShutdownPeriod and Options.GracefulShutdownTimeout.
const (
	defaultGrace = 30 * time.Second
	endless      = 100 * 365 * 24 * time.Hour
)

func coreOptions(o manager.Options) own.Options {
	c := own.Options{Informers: informers(o.Cache), DebugAddr: o.PprofBindAddress, GracefulTimeout: defaultGrace}
	if o.GracefulShutdownTimeout != nil {
		switch c.GracefulTimeout = *o.GracefulShutdownTimeout; {
		case c.GracefulTimeout == 0:
			c.GracefulTimeout = -1 // There, 0 is not to wait.
		case c.GracefulTimeout < 0:
			c.GracefulTimeout = endless // And this is to wait.
		}
	}
	if o.LeaderElection {
		c.LeaderElection.Enabled = true
		c.LeaderElection.Namespace, c.LeaderElection.Name = o.LeaderElectionNamespace, o.LeaderElectionID
		if o.LeaseDuration != nil {
			c.LeaderElection.LeaseDuration = *o.LeaseDuration
		}
		if o.RenewDeadline != nil {
			c.LeaderElection.RenewDeadline = *o.RenewDeadline
		}
		if o.RetryPeriod != nil {
			c.LeaderElection.RetryPeriod = *o.RetryPeriod
		}
	}
	return c
}

// build makes the parts.
func (m *Manager) build() error {
	through, err := over(m.config, m.http)
	if err != nil {
		return fmt.Errorf("new manager: %w", err)
	}
	if m.cache, err = newCache(through, m.o.Cache, m.core.Informers()); err != nil {
		return fmt.Errorf("new manager: %w", err)
	}
	direct := client.Options{HTTPClient: m.http, Scheme: m.o.Cache.Scheme, Mapper: m.o.Cache.Mapper}
	reader, err := client.New(m.config, direct)
	if err != nil {
		return fmt.Errorf("new manager: %w", err)
	}
	m.reader = reader
	o := m.o.Client
	if o.HTTPClient == nil {
		o.HTTPClient = m.http
	}
	o.Scheme = firstOf(o.Scheme, m.o.Cache.Scheme)
	if o.Mapper == nil {
		o.Mapper = m.o.Cache.Mapper
	}
	if o.Cache == nil {
		o.Cache = &client.CacheOptions{}
	}
	if o.Cache.Reader == nil {
		o.Cache.Reader = m.cache
	}
	newClient := m.o.NewClient
	if newClient == nil {
		newClient = NewClient
	}
	if m.client, err = newClient(m.config, o); err != nil {
		return fmt.Errorf("new manager: %w", err)
	}
	if m.metrics, err = server.NewServer(m.o.Metrics, m.config, m.http); err != nil {
		return fmt.Errorf("new manager: %w", err)
	}
	if m.metrics != nil {
		if err := m.core.Add(&runnable{name: "metrics server", start: m.metrics.Start}); err != nil {
			return err
		}
	}
	if address := m.o.HealthProbeBindAddress; address != "" && address != "0" {
		if err := m.core.Add(&runnable{name: "health probes", start: m.serveHealth}); err != nil {
			return err
		}
	}
	return m.core.Add(&runnable{name: "elected", guarded: true, start: func(ctx context.Context) error {
		close(m.elected)
		<-ctx.Done()
		return nil
	}})
}

// Core is the manager underneath.
func (m *Manager) Core() *own.Manager { return m.core }

// Add takes a runnable. Controllers get Flyball's queue.
func (m *Manager) Add(r manager.Runnable) error {
	if r == nil {
		return errors.New("add: the runnable is nil")
	}
	if l, ok := adopt(r); ok {
		if w, ok := r.(warmer); ok && m.o.LeaderElection && needsLeader(r) {
			l.warmed = make(chan struct{})
			if err := m.core.Add(&runnable{name: l.name + " warm-up", start: func(ctx context.Context) error {
				err := w.Warmup(ctx)
				close(l.warmed)
				if err == nil {
					<-ctx.Done() // The sources live as long as this context.
				}
				return err
			}}); err != nil {
				return err
			}
		}
		return m.core.Add(l)
	}
	return m.core.Add(&runnable{name: m.nameOf(r), guarded: needsLeader(r), start: r.Start})
}

// warmer is a controller that can start its sources without its workers.
type warmer interface {
	Warmup(ctx context.Context) error
}

// nameOf names a runnable by its type, and counts.
func (m *Manager) nameOf(r manager.Runnable) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := fmt.Sprintf("%T", r)
	m.names[name]++
	return fmt.Sprintf("%s %d", name, m.names[name])
}

// runnable is one of controller-runtime's as one of Flyball's.
type runnable struct {
	name    string
	guarded bool
	start   func(context.Context) error
}

func (r *runnable) Name() string                  { return r.name }
func (r *runnable) NeedLeaderElection() bool      { return r.guarded }
func (r *runnable) Run(ctx context.Context) error { return r.start(ctx) }

// Start runs everything until ctx is done, as [own.Manager.Run] of package manager does. It may be called once.
func (m *Manager) Start(ctx context.Context) error {
	return m.cache.during(func() error { return m.core.Run(m.logged(ctx)) })
}

// RunUntilIdle runs everything until there is nothing more to do; see RunUntilIdle of package manager. Controllers of other keys than
// reconcile.Request are not waited for.
func (m *Manager) RunUntilIdle(ctx context.Context, o own.IdleOptions) (summary own.Summary, err error) {
	err = m.cache.during(func() error {
		summary, err = m.core.RunUntilIdle(m.logged(ctx), o)
		return err
	})
	return summary, err
}

func (m *Manager) logged(ctx context.Context) context.Context {
	if m.o.BaseContext != nil {
		base := m.o.BaseContext()
		ctx = valuesOf{ctx, base}
	}
	return ctrllog.IntoContext(klog.NewContext(ctx, m.o.Logger), m.o.Logger)
}

// valuesOf is a context that has the values of another, too.
type valuesOf struct {
	context.Context
	base context.Context
}

// Value asks both.
func (v valuesOf) Value(key any) any {
	if value := v.Context.Value(key); value != nil {
		return value
	}
	return v.base.Value(key)
}

func (m *Manager) Elected() <-chan struct{}                { return m.elected }
func (m *Manager) GetHTTPClient() *http.Client             { return m.http }
func (m *Manager) GetConfig() *rest.Config                 { return m.config }
func (m *Manager) GetCache() cache.Cache                   { return m.cache }
func (m *Manager) GetScheme() *runtime.Scheme              { return m.o.Cache.Scheme }
func (m *Manager) GetClient() client.Client                { return m.client }
func (m *Manager) GetFieldIndexer() client.FieldIndexer    { return m.cache }
func (m *Manager) GetRESTMapper() meta.RESTMapper          { return m.o.Cache.Mapper }
func (m *Manager) GetAPIReader() client.Reader             { return m.reader }
func (m *Manager) GetLogger() logr.Logger                  { return m.o.Logger }
func (m *Manager) GetControllerOptions() config.Controller { return m.o.Controller }

// GetConverterRegistry returns the registry of the conversion webhook.
func (m *Manager) GetConverterRegistry() conversion.Registry { return m.registry }

// GetEventRecorderFor records events in the name of a component. Annotations of events are not kept.
func (m *Manager) GetEventRecorderFor(name string) record.EventRecorder {
	return eventRecorder{m.core.Recorder(name)}
}

// GetEventRecorder is GetEventRecorderFor under the interface of the newer API; action and related object are not kept.
func (m *Manager) GetEventRecorder(name string) recorder.EventRecorder {
	return record.NewEventRecorderAdapter(eventRecorder{m.core.Recorder(name)})
}

// GetWebhookServer returns the server of webhooks, and has it run.
func (m *Manager) GetWebhookServer() webhook.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.webhooks == nil {
		m.webhooks = webhook.NewServer(webhook.Options{})
	}
	if !m.webhooksAdded {
		m.webhooksAdded = true
		if err := m.core.Add(&runnable{name: "webhooks", start: m.webhooks.Start}); err != nil {
			m.o.Logger.Error(err, "Webhooks are not served")
		}
	}
	return m.webhooks
}

// AddMetricsServerExtraHandler serves something beside the metrics.
func (m *Manager) AddMetricsServerExtraHandler(path string, handler http.Handler) error {
	if m.metrics == nil {
		return errors.New("metrics are not served: Options.Metrics.BindAddress is 0")
	}
	return m.metrics.AddExtraHandler(path, handler)
}
