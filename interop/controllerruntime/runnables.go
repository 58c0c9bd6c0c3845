package controllerruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/internal/closed"
	own "github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/leader"
)

// hasCache is a cluster, or anything else with a cache.
type hasCache interface{ GetCache() cache.Cache }

// warmer is a runnable that can do part of its work before this process leads: a controller starts its sources.
type warmer interface {
	Warmup(ctx context.Context) error
}

// Add adds a runnable. Servers, webhooks and clusters start before everything else, on followers too. Controllers get
// Flyball's queue, unless they have a NewQueue of their own.
//
// Source: controller-runtime v0.25.2 pkg/manager/runnable_group.go, runnables.Add.
func (m *Manager) Add(r manager.Runnable) error {
	switch r := r.(type) {
	case nil:
		return errors.New("add: the runnable is nil")
	case *manager.Server:
		if !r.NeedLeaderElection() {
			return m.first.add(r, nil)
		}
	case hasCache:
		return m.first.add(r.(manager.Runnable), r.GetCache()) //nolint:forcetypeassert // It is one.
	case webhook.Server:
		return m.first.add(r, nil)
	}
	guarded := needsLeader(r)
	l, isLoop := m.adopt(r)
	if w, ok := r.(warmer); ok && (!isLoop || m.o.LeaderElection && guarded) {
		warmUp := w.Warmup
		if isLoop {
			warmUp = l.warmUp(w)
		}
		if err := m.core.Add(&runnable{manager: m, name: m.nameOf(r, "warm-up of "), start: warmUp}); err != nil {
			return err
		}
	}
	if isLoop {
		return m.core.Add(l)
	}
	return m.core.Add(&runnable{manager: m, name: m.nameOf(r, ""), guarded: guarded, start: r.Start})
}

// nameOf returns a name for a runnable, from its type.
func (m *Manager) nameOf(r manager.Runnable, prefix string) string {
	return m.unique(fmt.Sprintf("%s%T", prefix, r))
}

// unique numbers runnables of the same name.
func (m *Manager) unique(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.names[name]++
	if n := m.names[name]; n > 1 {
		return fmt.Sprintf("%s %d", name, n)
	}
	return name
}

// runnable makes a runnable of controller-runtime one of Flyball.
type runnable struct {
	manager *Manager
	name    string
	guarded bool
	start   func(context.Context) error
}

func (r *runnable) Name() string             { return r.name }
func (r *runnable) NeedLeaderElection() bool { return r.guarded }

func (r *runnable) Run(ctx context.Context) error { return r.manager.run(ctx, r.name, r.start) }

// run runs a runnable once the caches have synced. An error stops the manager, and Start returns it. An error after the
// stop is logged, as controller-runtime does.
func (m *Manager) run(ctx context.Context, name string, start func(context.Context) error) error {
	select {
	case <-m.synced:
	case <-ctx.Done():
		return nil
	}
	err := start(ctx)
	switch {
	case err == nil:
	case ctx.Err() == nil:
		m.fail(err)
	case !errors.Is(err, context.Canceled):
		ctrllog.FromContext(ctx).Error(err, "Runnable failed after it was stopped", "runnable", name)
	}
	return nil
}

// first has the runnables that others need. They start before the others, and end after them.
type first struct {
	mu      sync.Mutex
	waiting []*firstRunnable
	// start is not nil while runnables may be started.
	start   func(*firstRunnable)
	stopped bool
	running sync.WaitGroup
}

// firstRunnable is a runnable in first.
type firstRunnable struct {
	manager.Runnable
	// cache is the runnable's cache, or nil if it has none. synced is closed when the cache has synced.
	cache  cache.Cache
	synced chan struct{}
}

// add adds a runnable, with its cache if it has one.
//
// Errors: the manager has stopped.
func (f *first) add(r manager.Runnable, c cache.Cache) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := &firstRunnable{r, c, make(chan struct{})}
	switch {
	case f.stopped:
		return fmt.Errorf("add %T: %w", r, own.ErrStopped)
	case f.start != nil:
		f.start(one)
	default:
		f.waiting = append(f.waiting, one)
	}
	return nil
}

// begin starts the runnables that were added, and from then on those that are added later. It calls fail with the error
// of a runnable that was not told to end. synced waits for the caches that were added before; it returns false if ctx
// ends first.
func (f *first) begin(ctx context.Context,
	fail func(error),
) (synced func(context.Context) bool, end func(patience time.Duration) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.start = func(r *firstRunnable) {
		f.running.Go(func() {
			if err := r.Start(ctx); err != nil && ctx.Err() == nil {
				fail(err)
			}
		})
		f.running.Go(func() {
			if r.cache == nil || r.cache.WaitForCacheSync(ctx) {
				close(r.synced)
			}
		})
	}
	for _, r := range f.waiting {
		f.start(r)
	}
	synced = func(ctx context.Context) bool {
		for _, r := range f.waiting {
			select {
			case <-r.synced:
			case <-ctx.Done():
				return false
			}
		}
		return true
	}
	return synced, func(patience time.Duration) error { return f.end(cancel, patience) }
}

// end stops all runnables, and waits for them until a timeout.
func (f *first) end(cancel context.CancelFunc, patience time.Duration) error {
	f.mu.Lock()
	f.start, f.stopped = nil, true
	f.mu.Unlock()
	cancel()
	ended := make(chan struct{})
	go func() {
		f.running.Wait()
		close(ended)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return &own.UndoneError{Left: []error{fmt.Errorf("servers or caches did not end within %v", patience)}}
	}
}

// defaultRenewDeadline is the default of controller-runtime and Flyball. The timeout of a request depends on it.
const defaultRenewDeadline = 10 * time.Second

// election returns the core's options of an election for the lock that the options request. controller-runtime makes
// the lock.
func (m *Manager) election(config *rest.Config) (own.LeaderElection, error) {
	o := m.o
	e := own.LeaderElection{
		Enabled: o.LeaderElection, Namespace: o.LeaderElectionNamespace,
		Name: cmp.Or(o.LeaderElectionID, "leader-election"), After: m.synced,
	}
	for to, from := range map[*time.Duration]*time.Duration{
		&e.LeaseDuration: o.LeaseDuration, &e.RenewDeadline: o.RenewDeadline, &e.RetryPeriod: o.RetryPeriod,
	} {
		if from != nil {
			*to = *from
		}
	}
	var elsewhere events.Recorder
	if o.LeaderElectionConfig != nil {
		config = o.LeaderElectionConfig
		var err error
		if elsewhere, err = m.recorderOf(config); err != nil {
			return e, err
		}
	}
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil // A renewal must not wait for other requests.
	e.NewLock = func(here events.Recorder) (leader.Lock, error) {
		if o.LeaderElectionResourceLockInterface != nil {
			return lock{o.LeaderElectionResourceLockInterface}, nil
		}
		to := here
		if elsewhere != nil {
			to = elsewhere
		}
		made, err := leaderelection.NewResourceLock(config, leaseRecorders{to: to}, leaderelection.Options{
			LeaderElection: true, LeaderElectionResourceLock: o.LeaderElectionResourceLock,
			LeaderElectionID:        o.LeaderElectionID,
			LeaderElectionNamespace: o.LeaderElectionNamespace, LeaderLabels: o.LeaderElectionLabels,
			RenewDeadline: cmp.Or(e.RenewDeadline, defaultRenewDeadline),
		})
		return lock{made}, err
	}
	return e, nil
}

// lock is a lock of client-go as the core sees it.
type lock struct{ resourcelock.Interface }

// Get implements leader.Lock.
func (l lock) Get(ctx context.Context) (coordinationv1.LeaseSpec, error) {
	r, _, err := l.Interface.Get(ctx)
	if err != nil {
		return coordinationv1.LeaseSpec{}, err
	}
	return resourcelock.LeaderElectionRecordToLeaseSpec(r), nil
}

// Create implements leader.Lock.
func (l lock) Create(ctx context.Context, record coordinationv1.LeaseSpec) error {
	return l.Interface.Create(ctx, *resourcelock.LeaseSpecToLeaderElectionRecord(&record))
}

// Update implements leader.Lock.
func (l lock) Update(ctx context.Context, record coordinationv1.LeaseSpec) error {
	return l.Interface.Update(ctx, *resourcelock.LeaseSpecToLeaderElectionRecord(&record))
}

// recorderOf returns recorders for the cluster of the lease, which may not be the manager's.
func (m *Manager) recorderOf(config *rest.Config) (events.Recorder, error) {
	sender, err := events.New(config, events.Options{Scheme: m.o.Cache.Scheme})
	if err != nil {
		return nil, err
	}
	return sender.Recorder(m.o.LeaderElectionID), m.first.add(manager.RunnableFunc(sender.Run), nil)
}

// leaseRecorders implements controller-runtime's provider of recorders for a lock, which uses only one.
type leaseRecorders struct {
	recorder.Provider
	to events.Recorder
}

// GetEventRecorderFor returns the recorder of events about the lease.
func (l leaseRecorders) GetEventRecorderFor(string) record.EventRecorder {
	return leaseRecorder{to: l.to}
}

// leaseRecorder is a recorder of which a lock uses only Eventf.
type leaseRecorder struct {
	record.EventRecorder
	to resourcelock.EventRecorder
}

func (r leaseRecorder) Eventf(lease runtime.Object, eventType, reason, format string, args ...any) {
	r.to.Eventf(lease, eventType, reason, format, args...)
}

// allDone is a client-go DoneChecker that is done when all of its parts are.
//
// If there is one part, Done returns its channel. For several parts, Done makes one channel of its own. A caller of
// Done closes it if all parts are done by then; otherwise a goroutine does. That goroutine starts with the first call
// that comes too early, and also ends when the parts cannot become done any more.
//
// Concurrency: add must not be called concurrently with anything else; the other methods may be called at any time.
type allDone struct {
	name  string
	parts []donePart
	// If stopped or removed is closed, parts that are not done never will be.
	stopped, removed <-chan struct{}

	waits, closes sync.Once
	all           chan struct{} // closed once, when all parts are done; nothing is sent
}

// donePart has a channel that is closed when the part is done, and one that is closed when it never will be (or nil).
type donePart struct{ done, ends <-chan struct{} }

var _ toolscache.DoneChecker = (*allDone)(nil)

func newAllDone(name string, stopped, removed <-chan struct{}) *allDone {
	return &allDone{name: name, stopped: stopped, removed: removed, all: make(chan struct{})}
}

func (d *allDone) add(done, ends <-chan struct{}) { d.parts = append(d.parts, donePart{done, ends}) }

func (d *allDone) isDone() bool {
	return !slices.ContainsFunc(d.parts, func(p donePart) bool { return !closed.Is(p.done) })
}

// Name is for logs.
func (d *allDone) Name() string { return d.name }

// Done returns the same channel at every call.
func (d *allDone) Done() <-chan struct{} {
	switch {
	case len(d.parts) == 1:
		return d.parts[0].done
	case d.isDone():
		d.close()
	default:
		d.waits.Do(func() { go d.wait() })
	}
	return d.all
}

func (d *allDone) close() { d.closes.Do(func() { close(d.all) }) }

func (d *allDone) wait() {
	for _, p := range d.parts {
		select {
		case <-p.done:
		case <-p.ends:
		case <-d.stopped:
		case <-d.removed:
		}
	}
	if d.isDone() {
		d.close()
	}
}
