package controllerruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	peer "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/internal/workctx"
	own "github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// loop makes a controller of controller-runtime, with Flyball's queue, a reconcile.Loop: the manager sees what it does,
// and what is left to do.
type loop struct {
	manager *Manager
	name    string
	peer    manager.Runnable
	next    reconcile.Reconciler
	// makes is the controller's NewQueue. custom means that the caller has set it.
	makes  func(string, peer.TypedRateLimiter[reconcile.Request]) requests
	custom bool
	// queue is nil before the controller has started. own is the same queue if it is of this package.
	queue requests
	own   *queue[reconcile.Request]
	// asked is set when a worker has called Get for the first time.
	asked atomic.Bool

	// alive is the context for reconciles. It is set by Run, before the first.
	alive context.Context

	// warmed is closed when the sources have been started without leadership. It is nil if they start with it.
	warmed chan struct{}

	mu sync.Mutex
	// syncs, errs and panics are counters. peak is the greatest number of concurrent reconciles.
	syncs, errs, panics uint64
	peak                int
	// waiting has the requests that came before there was a queue.
	waiting []reconcile.Request
	failing map[reconcile.Request]own.Failing
	running map[reconcile.Request]struct{}
}

var _ own.Loop = (*loop)(nil)

// adopt makes a loop of a controller of reconcile.Request. It returns false for any other runnable.
//
// A controller's type is internal to controller-runtime, but two of its fields are exported: NewQueue, which makes its
// queue at the start, and Do, the reconciler. adopt replaces both. A NewQueue of the caller's still makes the queue.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller/controller.go, Controller.
func (m *Manager) adopt(r manager.Runnable) (*loop, bool) {
	v := reflect.ValueOf(r)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, false
	}
	newQueue, ok := fieldOf[func(string, peer.TypedRateLimiter[reconcile.Request]) requests](v, "NewQueue")
	if !ok {
		return nil, false
	}
	do, ok := fieldOf[reconcile.Reconciler](v, "Do")
	if !ok {
		return nil, false
	}
	name, ok := fieldOf[string](v, "Name")
	if !ok {
		return nil, false
	}
	l := &loop{
		manager: m, name: m.unique(cmp.Or(*name, fmt.Sprintf("%T", r))), peer: r, next: *do, makes: *newQueue,
		failing: map[reconcile.Request]own.Failing{}, running: map[reconcile.Request]struct{}{},
	}
	// controller-runtime's default is a function in the package of the options.
	l.custom = !strings.HasPrefix(nameOfFunc(*newQueue), reflect.TypeFor[controller.Options]().PkgPath()+".")
	*do, *newQueue = l, l.newQueue
	return l, true
}

func fieldOf[T any](v reflect.Value, name string) (*T, bool) {
	f := v.Elem().FieldByName(name)
	if !f.IsValid() || !f.CanAddr() || !f.CanInterface() {
		return nil, false
	}
	p, ok := f.Addr().Interface().(*T)
	return p, ok
}

// requests is a queue of requests.
type requests = peer.TypedRateLimitingInterface[reconcile.Request]

func nameOfFunc(f any) string { return runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name() }

func (l *loop) newQueue(name string, limiter peer.TypedRateLimiter[reconcile.Request]) requests {
	metrics := name
	if !l.custom {
		metrics = "" // This queue only shows of which kind it is: the function alone knows UsePriorityQueue.
	}
	made := l.makes(metrics, limiter)
	_, byPriority := made.(priorityqueue.PriorityQueue[reconcile.Request])
	if !l.custom {
		made.ShutDown()
		o := workqueue.Options[reconcile.Request]{Name: name, MaxCauses: 1}
		if byPriority {
			o.Order = workqueue.NewPriorityOrder[reconcile.Request](workqueue.PriorityOptions{})
		}
		made = newQueue(limiter, o)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = made
	l.own, _ = made.(*queue[reconcile.Request])
	for _, r := range l.waiting {
		made.Add(r)
	}
	l.waiting = nil
	if byPriority {
		return askedByPriority{
			made.(priorityqueue.PriorityQueue[reconcile.Request]),
			&l.asked,
		} //nolint:forcetypeassert // Ours is one.
	}
	return asked{made, &l.asked}
}

// asked records the first Get. By then the controller has started its sources and its workers.
type asked struct {
	requests
	once *atomic.Bool
}

func (a asked) Get() (reconcile.Request, bool) {
	a.once.Store(true)
	return a.requests.Get()
}

// askedByPriority is asked for a priority queue.
type askedByPriority struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	once *atomic.Bool
}

func (a askedByPriority) GetWithPriority() (reconcile.Request, int, bool) {
	a.once.Store(true)
	return a.PriorityQueue.GetWithPriority()
}

// Name returns the controller's name.
func (l *loop) Name() string { return l.name }

// NeedLeaderElection reports whether the controller waits for leadership.
func (l *loop) NeedLeaderElection() bool { return needsLeader(l.peer) }

// warmUp starts the sources before this process leads.
func (l *loop) warmUp(w warmer) func(context.Context) error {
	l.warmed = make(chan struct{})
	return func(ctx context.Context) error {
		err := w.Warmup(ctx)
		close(l.warmed)
		if err == nil {
			<-ctx.Done() // The sources live as long as this context.
		}
		return err
	}
}

// Run runs the controller. ctx ends its queue; work in flight continues until the manager's deadline.
func (l *loop) Run(ctx context.Context) error {
	if l.warmed != nil {
		select {
		case <-l.warmed:
		case <-ctx.Done():
			return nil
		}
	}
	alive, release := workctx.From(ctx, 0)
	defer release()
	l.alive = alive
	return l.manager.run(ctx, l.name, l.peer.Start)
}

// lasting is a context that ends with the embedded one and has the values of another.
type lasting struct {
	context.Context
	values context.Context
}

// Value looks in values first. They must not end: context.WithCancel finds by Value what ends a context.
func (l lasting) Value(key any) any {
	if value := l.values.Value(key); value != nil {
		return value
	}
	return l.Context.Value(key)
}

// Enqueue adds a request to the queue.
func (l *loop) Enqueue(r own.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	request := reconcile.Request{NamespacedName: r.NamespacedName}
	if l.queue != nil {
		l.queue.Add(request)
		return
	}
	l.waiting = append(l.waiting, request)
}

// Reconcile calls the reconciler with a context that outlives the stop, and records the outcome. Unless reconciles have
// a timeout, the context does not end with the reconcile: controller-runtime's does not, and there are providers of
// clusters whose reconciler starts a cluster with it.
func (l *loop) Reconcile(ctx context.Context, r reconcile.Request) (result reconcile.Result, err error) {
	alive := ctx
	if l.alive != nil {
		alive = lasting{l.alive, context.WithoutCancel(ctx)}
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		alive, cancel = context.WithDeadlineCause(alive, deadline, context.DeadlineExceeded)
		defer cancel()
	}
	l.begin(r)
	panicked := true
	defer func() { l.end(r, err, panicked) }()
	result, err = l.next.Reconcile(alive, r)
	panicked = false
	return result, err
}

func (l *loop) begin(r reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[r] = struct{}{}
	l.peak = max(l.peak, len(l.running))
}

func (l *loop) end(r reconcile.Request, err error, panicked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, r)
	l.syncs++
	if panicked {
		l.panics++
		err = errors.New("panic")
	}
	if err == nil {
		delete(l.failing, r)
		return
	}
	l.errs++
	l.failing[r] = own.Failing{
		Key: r.String(), Err: err, Attempts: l.failing[r].Attempts + 1,
		GivenUp: errors.Is(err, reconcile.TerminalError(nil)),
	}
}

// Stats returns the controller's counters. Adds to a queue of the caller's are not counted.
func (l *loop) Stats() own.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := own.Stats{Syncs: l.syncs, Errors: l.errs, Panics: l.panics, InFlight: len(l.running), Peak: l.peak}
	switch {
	case l.own != nil:
		queued := l.own.core.Stats()
		s.Adds, s.Retries, s.Queued = queued.Adds, queued.Retries, queued.Depth
		s.InFlight = max(s.InFlight, queued.Processing)
	case l.queue != nil:
		s.Queued = l.queue.Len()
	}
	return s
}

// Work returns what there is to do. It does not include what a queue of the caller's delays.
func (l *loop) Work() own.Work {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := own.Work{Started: l.asked.Load(), InFlight: len(l.running)}
	for _, f := range l.failing {
		w.Failing = append(w.Failing, f)
	}
	if l.own == nil {
		if l.queue != nil {
			w.Ready = l.queue.Len()
		}
		return w
	}
	stats := l.own.core.Stats()
	w.Ready, w.InFlight = stats.Depth, stats.Processing
	for _, d := range l.own.core.View(stats.Delayed).Delayed {
		delayed := own.Delayed{Key: fmt.Sprint(d.Key), In: max(d.Time, 0)}
		if len(d.Causes) > 0 {
			delayed.Why = d.Causes[len(d.Causes)-1].Event
		} else if _, fails := l.failing[d.Key]; fails { // NewQueue does not record causes.
			delayed.Why = own.WhyRetry
		}
		w.Delayed = append(w.Delayed, delayed)
	}
	return w
}

// InFlight returns the requests that are being worked on.
func (l *loop) InFlight() (keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.running {
		keys = append(keys, r.String())
	}
	return keys
}

// needsLeader reports whether a runnable waits for the lease. It does unless its NeedLeaderElection returns false.
func needsLeader(r manager.Runnable) bool {
	l, ok := r.(manager.LeaderElectionRunnable)
	return !ok || l.NeedLeaderElection()
}
