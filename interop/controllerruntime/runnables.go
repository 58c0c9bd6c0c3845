package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	own "github.com/flyball-dev/flyball/manager"
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
