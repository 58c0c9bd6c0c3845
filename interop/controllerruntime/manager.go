package controllerruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	own "github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/leader"
)

// Manager implements controller-runtime's Manager with Flyball's. An unchanged SetupWithManager gets a stop in two
// steps, in which work in flight can finish; fenced writes; and [Manager.RunUntilIdle]. [NewManager] makes it.
//
// Controllers of reconcile.Request use Flyball's queue. Others run unchanged, and RunUntilIdle does not see them.
type Manager struct {
	core   *own.Manager
	o      manager.Options
	config *rest.Config
	http   *http.Client
	cache  cache.Cache
	client client.Client
	reader client.Reader
	// metrics is nil when the address is "0".
	metrics  server.Server
	registry conversion.Registry
	// sink connects Options.EventBroadcaster with the API server.
	sink sync.Once
	// first has the servers, webhooks and caches, which everything else needs.
	first first
	// synced is closed when the caches that existed at the start have synced; elected, when this process leads.
	// Everything that is not in first waits for synced.
	synced, elected chan struct{}
	started         atomic.Bool
	// converts reports whether a conversion webhook is served; see own.Options.ServesConversion.
	converts atomic.Bool
	// fail stops the manager with an error. It is set before anything runs.
	fail context.CancelCauseFunc

	mu            sync.Mutex
	webhooksAdded bool
	names         map[string]int
	live, ready   map[string]healthz.Checker
}

var _ manager.Manager = (*Manager)(nil)

// NewManager returns a manager for the cluster of config. It takes controller-runtime's options.
//
// A cache of the caller's (Options.NewCache, or Options.Cache.NewInformer) is used as it is. RunUntilIdle then returns
// an error, because it cannot know what the cache has yet to show. [NewCache] and [NewLeanCache] do not count as the
// caller's.
//
// Errors: controller-runtime's; lease times that do not fit together.
func NewManager(config *rest.Config, o manager.Options) (*Manager, error) {
	if config == nil {
		return nil, fmt.Errorf("new manager: %w", errNoConfig)
	}
	m := &Manager{
		registry: conversion.NewRegistry(), synced: make(chan struct{}), elected: make(chan struct{}),
		names: map[string]int{}, live: map[string]healthz.Checker{}, ready: map[string]healthz.Checker{},
	}
	var err error
	if m.o, err = complete(config, o); err != nil {
		return nil, err
	}
	election, err := m.election(config)
	if err != nil {
		return nil, err
	}
	if m.core, err = own.New(config, m.coreOptions(election)); err != nil {
		return nil, err
	}
	m.config = m.core.GetConfig()
	m.config.ContentType, m.config.AcceptContentTypes = config.ContentType, config.AcceptContentTypes // Chosen by kind.
	if m.http, err = rest.HTTPClientFor(m.config); err != nil {
		return nil, err
	}
	if err := m.makeCache(config); err != nil {
		return nil, err
	}
	if err := m.makeClients(); err != nil {
		return nil, err
	}
	if err := m.makeServers(); err != nil {
		return nil, err
	}
	return m, m.Add(manager.RunnableFunc(func(ctx context.Context) error { // A new manager accepts it.
		close(m.elected)
		<-ctx.Done()
		return nil
	}))
}

// complete sets the defaults, as controller-runtime does.
func complete(config *rest.Config, o manager.Options) (manager.Options, error) {
	if o.Logger.GetSink() == nil {
		o.Logger = ctrllog.Log
	}
	if o.Controller.Logger.GetSink() == nil {
		o.Controller.Logger = o.Logger
	}
	if o.Controller.EnableWarmup == nil && o.LeaderElection {
		o.Controller.EnableWarmup = new(true) // Followers keep the caches of their controllers warm.
	}
	if o.WebhookServer == nil {
		o.WebhookServer = webhook.NewServer(webhook.Options{})
	}
	if o.Cache.NewInformer != nil && o.NewCache == nil {
		o.NewCache = cache.New
	}
	o.Cache.Scheme = firstOf(o.Cache.Scheme, o.Scheme)
	if o.MapperProvider != nil && o.Cache.Mapper == nil {
		httpClient, err := rest.HTTPClientFor(config)
		if err != nil {
			return o, err
		}
		if o.Cache.Mapper, err = o.MapperProvider(config, httpClient); err != nil {
			return o, err
		}
	}
	var err error
	o.Cache, err = withDefaults(config, o.Cache)
	return o, err
}

func firstOf(a, b *runtime.Scheme) *runtime.Scheme {
	if a != nil {
		return a
	}
	return b
}

// The graceful timeout.
//
// Source: controller-runtime v0.25.2 pkg/manager/manager.go, defaultGracefulShutdownPeriod and
// Options.GracefulShutdownTimeout.
const (
	defaultGrace = 30 * time.Second
	endless      = 100 * 365 * 24 * time.Hour
)

func (m *Manager) coreOptions(election own.LeaderElection) own.Options {
	o := own.Options{
		Informers: informers(m.o.Cache), LeaderElection: election, GracefulTimeout: m.grace(),
		ServesConversion: m.converts.Load,
	}
	o.Informers.StandardDecoding = !is(m.o.NewCache, NewLeanCache)
	o.GracefulTimeout = cmp.Or(o.GracefulTimeout, -1) // For the core, 0 is the default.
	return o
}

// grace returns how long the stop may take.
func (m *Manager) grace() time.Duration {
	switch o := m.o.GracefulShutdownTimeout; {
	case o == nil:
		return defaultGrace
	case *o < 0:
		return endless
	default:
		return *o
	}
}

// is reports whether f is one of this package's functions.
func is(f, ours cache.NewCacheFunc) bool {
	return reflect.ValueOf(f).Pointer() == reflect.ValueOf(ours).Pointer()
}

func (m *Manager) makeCache(config *rest.Config) error {
	if f := m.o.NewCache; f != nil && !is(f, NewCache) && !is(f, NewLeanCache) {
		var err error
		if m.cache, err = f(config, m.o.Cache); err != nil {
			return err
		}
		return m.first.add(m.cache, m.cache)
	}
	through, err := over(m.config, m.http)
	if err != nil {
		return err
	}
	m.cache, err = newCache(through, m.o.Cache, m.core.Informers())
	return err
}

func (m *Manager) makeClients() error {
	var err error
	if m.reader, err = client.New(m.config,
		client.Options{HTTPClient: m.http, Scheme: m.o.Cache.Scheme, Mapper: m.o.Cache.Mapper}); err != nil {
		return err
	}
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
	m.client, err = newClient(m.config, o)
	return err
}

// Core returns Flyball's manager underneath.
func (m *Manager) Core() *own.Manager { return m.core }

// Start runs everything until ctx is done, as [own.Manager.Run] does. It may be called once.
//
// Errors: the unwrapped error of a runnable; [own.UndoneError] for work that was left undone, unless
// GracefulShutdownTimeout is 0.
func (m *Manager) Start(ctx context.Context) error { return m.during(ctx, m.core.Run) }

// RunUntilIdle runs everything until there is nothing more to do; see RunUntilIdle of package manager. It does not wait
// for controllers of keys other than reconcile.Request, nor for what a queue of the caller's delays.
//
// Errors: see Start; a cache of the caller's.
func (m *Manager) RunUntilIdle(ctx context.Context, o own.IdleOptions) (summary own.Summary, err error) {
	if cache, ok := m.cache.(*Cache); !ok || cache.factory != m.core.Informers() {
		return summary,
			errors.New(
				"run until idle: Options.NewCache, or Cache.NewInformer, made a cache of which the manager cannot " +
					"tell " +
					"what it has still to show: leave it out",
			)
	}
	err = m.during(ctx, func(ctx context.Context) error {
		summary, err = m.core.RunUntilIdle(ctx, o)
		return err
	})
	return summary, err
}

// during runs the core, and around it what the core's runnables need: servers, webhooks, caches, events.
func (m *Manager) during(ctx context.Context, run func(context.Context) error) error {
	if m.started.Swap(true) {
		return errors.New("manager already started")
	}
	m.serveConversion()
	ctx, fail := context.WithCancelCause(m.logged(ctx))
	defer fail(nil)
	var mu sync.Mutex
	var failure error
	m.fail = func(err error) {
		if ctx.Err() != nil {
			m.o.Logger.Error(err, "Failed during the stop")
			return
		}
		mu.Lock()
		failure = cmp.Or(failure, err)
		mu.Unlock()
		fail(err)
	}
	cached := func(run func() error) error { return run() }
	if own, ok := m.cache.(*Cache); ok && own.factory == m.core.Informers() {
		cached = own.during
	}
	err := cached(func() error {
		synced, end := m.first.begin(ctx, m.fail)
		var sync sync.WaitGroup
		sync.Go(func() {
			if m.cache.WaitForCacheSync(ctx) && synced(ctx) {
				close(m.synced)
			}
		})
		err := run(ctx)
		fail(nil)
		sync.Wait()
		if errors.Is(err, leader.ErrLost) {
			err = fmt.Errorf("leader election lost: %w", err) // controller-runtime's wording, which scripts search for.
		}
		return errors.Join(err, end(m.grace()))
	})
	if undone := (*own.UndoneError)(nil); m.grace() == 0 && errors.As(err, &undone) {
		m.o.Logger.Info("Did not wait for work in flight", "reason", err.Error())
		err = nil
	}
	mu.Lock()
	defer mu.Unlock()
	switch {
	case failure == nil || errors.Is(err, failure):
		return err
	case err == nil:
		return failure
	}
	return kerrors.NewAggregate([]error{failure, err})
}

func (m *Manager) logged(ctx context.Context) context.Context {
	if m.o.BaseContext != nil {
		base := m.o.BaseContext()
		ctx = valuesOf{ctx, base}
	}
	return ctrllog.IntoContext(klog.NewContext(ctx, m.o.Logger), m.o.Logger)
}

// valuesOf is a context that also has the values of another one.
type valuesOf struct {
	context.Context
	base context.Context
}

// Value looks in both.
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
