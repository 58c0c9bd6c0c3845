package feed

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/flyball-dev/flyball/internal/backlog"
	"github.com/flyball-dev/flyball/internal/closed"
	"github.com/flyball-dev/flyball/workqueue"
)

// Source is a reconcile.Source as this package runs it.
type Source[K comparable] interface {
	// Run runs the source. Its keys go to held, or to the queue if held is nil or was flushed.
	Run(ctx context.Context, held *backlog.Backlog[K, workqueue.Cause], synced func()) error
	Health() error
	String() string
	// Repeats reports whether the source delivers everything again when it is run again.
	Repeats() bool
}

// Feeds runs the sources of one controller. The zero value has no sources.
//
// Concurrency: all methods may be called from any goroutine. No method of a source is called under the lock.
type Feeds[K comparable] struct {
	mu    sync.Mutex
	phase phase
	// feeds has a feed for each source. Invariant: while start is not nil, each feed has a goroutine in phase running,
	// and each feed whose source repeats has one during a warm-up run.
	feeds []*feed[K]
	// start starts the goroutine of a feed. Invariant: start is not nil in phase running and during a warm-up run,
	// except while Start decides whether that run goes on. Otherwise start is nil.
	start func(*feed[K])
	// fail ends the controller with an error; nil before Start.
	fail func(error)
	// goroutines counts the goroutines that Start started.
	goroutines sync.WaitGroup
	// warm is the warm-up run whose sources are running, or nil. It may go on after Start.
	warm *warmup[K]
}

// phase is the phase of a controller's life. It only moves forward.
type phase int

const (
	created phase = iota
	running       // Start was called
	stopped       // Stop was called
)

// feed is a source and the goroutine that runs it.
type feed[K comparable] struct {
	source  Source[K]
	repeats bool
	started bool          // the goroutine was started, and may have ended
	synced  chan struct{} // closed when the source has delivered its initial keys; capacity 0
	gone    chan struct{} // closed when the source's goroutine has ended; capacity 0
}

func newFeed[K comparable](s Source[K], repeats bool) *feed[K] {
	return &feed[K]{source: s, repeats: repeats, synced: make(chan struct{}), gone: make(chan struct{})}
}

// isSynced reports whether the source has delivered its initial keys.
func (f *feed[K]) isSynced() bool { return closed.Is(f.synced) }

// Add adds a source. It starts at once if the other sources are running. Add returns false after Stop.
func (f *Feeds[K]) Add(s Source[K]) bool {
	added := newFeed(s, s.Repeats())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.phase == stopped {
		return false
	}
	f.feeds = append(f.feeds, added)
	if f.start != nil {
		f.start(added)
	}
	return true
}

// Start starts every source. If a warm-up run is in progress and its backlog is not outgrown, the sources of that run
// are not started again: they go on running. Start passes the error of a source to fail. It returns false if it was
// called before.
func (f *Feeds[K]) Start(ctx context.Context, fail func(error)) bool {
	f.mu.Lock()
	if f.phase != created {
		f.mu.Unlock()
		return false
	}
	f.phase, f.fail, f.start = running, fail, nil // A source that is added now waits for the end of this call.
	f.mu.Unlock()
	f.takeOver()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.start = starter[K](ctx, fail, &f.goroutines, nil)
	for _, feed := range f.feeds {
		if !feed.started {
			f.start(feed)
		}
	}
	return true
}

// starter returns a function that starts a source's goroutine.
func starter[K comparable](ctx context.Context, fail func(error), goroutines *sync.WaitGroup,
	held *backlog.Backlog[K, workqueue.Cause],
) func(*feed[K]) {
	return func(f *feed[K]) {
		f.started = true
		goroutines.Go(func() {
			defer close(f.gone)
			if err := f.source.Run(ctx, held, sync.OnceFunc(func() { close(f.synced) })); err != nil {
				fail(err)
			}
		})
	}
}

// WaitSynced waits until every source is synced or has ended. It returns false if ctx is done first.
func (f *Feeds[K]) WaitSynced(ctx context.Context) bool {
	for _, feed := range f.all() {
		select {
		case <-feed.synced:
		case <-feed.gone:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

func (f *Feeds[K]) all() []*feed[K] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.feeds)
}

// Flush calls add for each key that was held back. After Flush, the sources add their keys to the queue.
func (f *Feeds[K]) Flush(add func(key K, o workqueue.AddOptions)) {
	f.mu.Lock()
	warm := f.warm
	f.mu.Unlock()
	if warm == nil {
		return
	}
	warm.held.Flush(func(key K, o backlog.Options[workqueue.Cause]) { add(key, workqueue.AddOptions(o)) })
	f.mu.Lock()
	defer f.mu.Unlock()
	warm.flushed = true
}

// Stop ends a warm-up run. After Stop, Add returns false. Stop does not end the sources that Start started; they end
// with their context.
func (f *Feeds[K]) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.phase, f.start = stopped, nil
	if f.warm != nil {
		f.warm.cancel(nil)
	}
}

// Wait waits until all sources have ended. It is called after Stop.
func (f *Feeds[K]) Wait() {
	f.goroutines.Wait()
	f.mu.Lock()
	warm := f.warm
	f.mu.Unlock()
	if warm != nil {
		<-warm.ended
	}
}

// Running reports whether Start was called, and Stop was not yet.
func (f *Feeds[K]) Running() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.phase == running
}

// Warming reports whether there is a warm-up run, and Start was not called yet.
func (f *Feeds[K]) Warming() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.phase == created && f.warm != nil
}

// Synced reports whether all initial keys have been added to the queue: the controller is running, each source is
// synced, and no keys are held back.
func (f *Feeds[K]) Synced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.phase == running && (f.warm == nil || f.warm.flushed) &&
		!slices.ContainsFunc(f.feeds, func(feed *feed[K]) bool { return !feed.isSynced() })
}

// Held returns the number of keys that are held back.
func (f *Feeds[K]) Held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.warm == nil {
		return 0
	}
	return f.warm.held.Len()
}

// Health returns an error for each source that should be synced and is not.
func (f *Feeds[K]) Health() (problems []error) {
	warming := f.Warming()
	for _, feed := range f.all() {
		if warming && !feed.repeats || feed.isSynced() {
			continue
		}
		err := feed.source.Health()
		if err == nil {
			err = fmt.Errorf("%s: the initial objects are still being handled", feed.source)
		}
		problems = append(problems, err)
	}
	return problems
}
