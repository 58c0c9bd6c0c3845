package informer

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/internal/broadcast"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/fanout"
	"github.com/flyball-dev/flyball/informer/internal/mutation"
	"github.com/flyball-dev/flyball/informer/internal/wording"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/informer/reflector"
	"github.com/flyball-dev/flyball/internal/latency"
)

// Options configure a [SharedInformer]. The zero value works.
type Options[T objects.Object] struct {
	// Resource is the plural name with the group ("deployments.apps"), for errors, logs and metrics; "" is "objects".
	Resource string
	// Indexes has the first indexes; see [Informer].AddIndex.
	Indexes map[string]indexer.IndexFunc[T]
	// Transform, PageSize, StreamLists, WatchTimeout, Grace and Backoff are as in [reflector.Options].
	Transform    func(T) (T, error)
	PageSize     int64
	StreamLists  bool
	WatchTimeout time.Duration
	Grace        time.Duration
	Backoff      reflector.Backoff
	// Panics decides what happens when a handler panics.
	Panics handler.PanicPolicy
	// OnError is as in [reflector.Options].
	OnError func(ctx context.Context, err error)
	// Server is a factory for the same server. If one of its informers, or this one, notices that the server's history
	// has ended, all of them list anew. nil means that the informer is alone.
	Server *Factory
}

// latencies has the upper bounds of the buckets of Stats.Processing.
//
// Source: informer_processing_latency_seconds in k8s.io/component-base/metrics/prometheus/clientgo/fifo v0.37.2.
var latencies = []time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second,
}

// SharedInformer is the pipeline from the server to the handlers for one resource. The package comment says what it
// promises.
type SharedInformer[T objects.Object] struct {
	o       Options[T]
	indexer *indexer.Indexer[T]
	fifo    *deltafifo.DeltaFIFO[T]
	fan     *fanout.Fanout[T]
	// mutations is nil unless mutation detection is on.
	mutations *mutation.Detector[T]
	// server is shared by all informers of the server.
	server *connection.Server
	// consumers are the goroutines of consume. One of them applies batches, the others call handlers.
	consumers sync.WaitGroup
	// sources is sorted by namespace. The index of a source is its scope in the indexer. Immutable.
	sources []source[T]

	// joining is held while a batch is applied and published, and while a new handler reads the cache. So the handler
	// gets each change once: as part of the cache, or in a batch.
	joining sync.Mutex
	// unindexed reports whether logIndexErr found objects left out of an index. Only the consumer uses it.
	unindexed bool
	// synced is closed by the consumer when it has published the batch that completes the first list of every source.
	synced chan struct{}
	// stopped is closed by Run before it returns.
	stopped chan struct{}
	// failed is announced after any source's list or watch has failed.
	failed  broadcast.Broadcast
	started atomic.Bool

	// observers are called after each batch. The slice is replaced, never changed; observing guards the field.
	observers []*observer
	observing sync.Mutex
	// inconsistent is the function why of the last call of relist; nil before the first call.
	inconsistent atomic.Pointer[func() error]

	// unnamed counts the handlers without a name.
	unnamed              atomic.Int64
	duplicates, outdated atomic.Int64
	batches              atomic.Int64 // See Stats, also for processing.
	processing           *latency.Recorder
}

// source is one reflector of an informer, and the namespace that it follows; "" means all.
type source[T objects.Object] struct {
	namespace string
	lw        listwatch.ListerWatcher[T]
	status    *connection.Status
	reflector *reflector.Reflector[T]
}

// NewSharedInformer returns an informer for the objects that lw lists. It does nothing before Run.
func NewSharedInformer[T objects.Object](lw listwatch.ListerWatcher[T], o Options[T]) *SharedInformer[T] {
	return NewSharedInformerOfNamespaces(map[string]listwatch.ListerWatcher[T]{"": lw}, o)
}

// NewSharedInformerOfNamespaces returns one informer over several namespaces, for programs that may not list all
// namespaces. Each key of lws is a namespace; its value lists only that one. The informer has synced when every
// namespace has.
func NewSharedInformerOfNamespaces[T objects.Object](lws map[string]listwatch.ListerWatcher[T],
	o Options[T],
) *SharedInformer[T] {
	o.Resource = cmp.Or(o.Resource, "objects")
	server := connection.NewServer(nil)
	if o.Server != nil {
		server = o.Server.server
	}
	s := &SharedInformer[T]{
		o:          o,
		indexer:    indexer.New[T](nil, indexer.Options{Scopes: len(lws)}),
		fifo:       deltafifo.New[T](),
		fan:        fanout.New[T](o.Panics),
		mutations:  mutation.FromEnv[T](o.Resource),
		synced:     make(chan struct{}),
		stopped:    make(chan struct{}),
		server:     server,
		processing: latency.New(latencies),
	}
	for scope, namespace := range slices.Sorted(maps.Keys(lws)) {
		lw, status := lws[namespace], connection.NewStatus(connection.StatusOptions{
			Resource: o.Resource, Namespace: namespace, Server: server, Failed: &s.failed, OnError: o.OnError,
		})
		s.sources = append(s.sources, source[T]{namespace, lw, status, reflector.New(lw, s.fifo, reflector.Options[T]{
			Resource: o.Resource, Namespace: namespace, Scope: scope, Transform: o.Transform, PageSize: o.PageSize,
			StreamLists: o.StreamLists, WatchTimeout: o.WatchTimeout, Grace: o.Grace, Backoff: o.Backoff,
			Cache: s.indexer, Status: status,
		})})
	}
	for name, f := range o.Indexes {
		if err := s.indexer.AddIndex(name, f); err != nil {
			panic(err) // Names in a map are distinct and the indexer is empty.
		}
	}
	return s
}

// Run keeps the cache up to date until ctx is done. It returns when everything that it started has ended, including
// running calls of handlers. Changes that are pending then are not delivered.
//
// Errors: if called twice.
func (s *SharedInformer[T]) Run(ctx context.Context) error {
	if s.started.Swap(true) {
		return fmt.Errorf("informer of %s: Run called twice", s.o.Resource)
	}
	s.fan.Begin(ctx, s.o.Resource)
	var reflectors sync.WaitGroup
	for _, src := range s.sources {
		reflectors.Go(func() { _ = src.reflector.Run(ctx) }) // It always returns nil.
	}
	s.consumers.Go(func() { s.consume(ctx) })
	reflectors.Wait()
	s.fan.Stop()
	s.consumers.Wait()
	close(s.stopped)
	return nil
}

// Indexer returns the cache itself. Handlers are not called for what is written to it directly.
func (s *SharedInformer[T]) Indexer() *indexer.Indexer[T] { return s.indexer }

// AddHandler is described at [Informer].
func (s *SharedInformer[T]) AddHandler(h handler.Handler[T], o handler.Options) (handler.Registration, error) {
	if o.Name == "" {
		o.Name = s.o.Resource + "-" + strconv.FormatInt(s.unnamed.Add(1), 10)
	}
	h = s.mutations.Guard(h, o.Name)
	s.joining.Lock()
	r, err := s.fan.Join(h, o,
		fanout.Batch[T]{Changes: s.indexer.Everything(indexer.ChangeAdd), Synced: s.indexer.Synced()})
	s.joining.Unlock()
	if err != nil {
		return nil, fmt.Errorf("add handler to informer of %s: %w", s.o.Resource, err)
	}
	if o.Resync > 0 {
		s.fifo.Wake() // A resync may be due earlier.
	}
	return r, nil
}

// RemoveHandler is described at [Informer].
func (s *SharedInformer[T]) RemoveHandler(ctx context.Context, r handler.Registration) error {
	if r == nil {
		return fmt.Errorf("remove handler from informer of %s: the registration is nil: pass what AddHandler returned",
			s.o.Resource)
	}
	return fanout.Remove(ctx, r)
}

// AddIndex is described at [Informer].
func (s *SharedInformer[T]) AddIndex(name string, f indexer.IndexFunc[T]) error {
	err := s.indexer.AddIndex(name, f)
	s.fifo.Wake() // The index may lack objects.
	return err
}

// Get is described at [Informer].
func (s *SharedInformer[T]) Get(namespace, name string) (T, bool) {
	return s.indexer.Get(objects.KeyOf(namespace, name))
}

// List is described at [Informer].
func (s *SharedInformer[T]) List(namespace string, sel labels.Selector) []T {
	return s.indexer.List(namespace, sel)
}

// ByIndex is described at [Informer].
func (s *SharedInformer[T]) ByIndex(name, value string) ([]T, error) {
	return s.indexer.ByIndex(name, value)
}

// All is described at [Informer].
func (s *SharedInformer[T]) All() iter.Seq[T] { return s.indexer.All() }

// AllByIndex is described at [Informer].
func (s *SharedInformer[T]) AllByIndex(name, value string) (iter.Seq[T], error) {
	return s.indexer.AllByIndex(name, value)
}

// Snapshot is described at [Informer].
func (s *SharedInformer[T]) Snapshot() indexer.Snapshot[T] { return s.indexer.Snapshot() }

// ResourceVersion is described at [Informer].
func (s *SharedInformer[T]) ResourceVersion() string { return s.indexer.ResourceVersion() }

// NamespaceResourceVersion is described at [Informer].
func (s *SharedInformer[T]) NamespaceResourceVersion(namespace string) string {
	if namespace == "" {
		return s.ResourceVersion()
	}
	for scope, src := range s.sources {
		if src.namespace == "" || src.namespace == namespace {
			return s.indexer.ScopeResourceVersion(scope)
		}
	}
	return ""
}

// History is described at [Informer].
func (s *SharedInformer[T]) History(namespace string) int64 {
	number := int64(-1)
	for scope, src := range s.sources {
		if namespace == "" || src.namespace == "" || src.namespace == namespace {
			if of := s.indexer.ScopeHistory(scope); number < 0 || of < number {
				number = of
			}
		}
	}
	return number
}

// WaitForResourceVersion is described at [Informer].
func (s *SharedInformer[T]) WaitForResourceVersion(ctx context.Context, namespace, rv string) error {
	followed := false
	for scope, src := range s.sources {
		if namespace != "" && src.namespace != "" && src.namespace != namespace {
			continue
		}
		followed = true
		if err := s.indexer.WaitForResourceVersion(ctx, scope, rv); err != nil {
			return fmt.Errorf("%s %s: %w", s.o.Resource, wording.Where(src.namespace), err)
		}
	}
	if !followed {
		return fmt.Errorf("%s in namespace %s: %w", s.o.Resource, namespace, ErrNotFollowed)
	}
	return nil
}

// Health is described at [Informer]. For several namespaces it is the health of the namespace that failed first, if one
// fails.
func (s *SharedInformer[T]) Health() Health {
	h := Health{Resource: s.o.Resource, Synced: s.HasSynced()}
	for i, src := range s.sources {
		since, err := src.status.Health()
		worse := err != nil && (h.Err == nil || since.Before(h.Since))
		if i == 0 || worse || (h.Err == nil && err == nil && since.Before(h.Since)) {
			h.Namespace, h.Err, h.Since = src.namespace, err, since
		}
		if n, err := src.status.Unreadables(); n > 0 {
			h.Unreadable += n
			h.UnreadableErr = err
		}
	}
	h.Unindexed, h.IndexErr = s.indexer.Unindexed()
	if why := s.inconsistent.Load(); why != nil {
		h.Inconsistent = (*why)()
	}
	if h.Synced && s.History("") < s.server.Current() {
		h.Inconsistent = ErrHistoryReset
	}
	return h
}
