package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	peer "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/internal/workctx"
	own "github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// loop is one of controller-runtime's controllers, with our queue, as a reconcile.Loop: the manager sees what it does, and what is
// left to do.
type loop struct {
	name  string
	peer  manager.Runnable
	next  reconcile.Reconciler
	queue atomic.Pointer[queue[reconcile.Request]]

	// warmed is closed when the sources have been started without the leadership; nil when they start with it.
	warmed chan struct{}

	mu sync.Mutex
	// syncs, errs and panics count; peak is the most that ran at once.
	syncs, errs, panics uint64
	peak                int
	// waiting are requests that came before there was a queue.
	waiting []reconcile.Request
	failing map[reconcile.Request]own.Failing
	running map[reconcile.Request]struct{}
}

var _ own.Loop = (*loop)(nil)

// adopt makes a loop of a controller of reconcile.Request; false for any other runnable.
//
// A controller's type is internal to controller-runtime, but its fields are not hidden: NewQueue makes its queue when it starts, Do is
// the reconciler. Both are replaced here.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller/controller.go, Controller.
func adopt(r manager.Runnable) (*loop, bool) {
	v := reflect.ValueOf(r)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, false
	}
	newQueue, ok := fieldOf[func(string, peer.TypedRateLimiter[reconcile.Request]) peer.TypedRateLimitingInterface[reconcile.Request]](v, "NewQueue")
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
	l := &loop{name: *name, peer: r, next: *do, failing: map[reconcile.Request]own.Failing{}, running: map[reconcile.Request]struct{}{}}
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

func (l *loop) newQueue(name string, limiter peer.TypedRateLimiter[reconcile.Request]) peer.TypedRateLimitingInterface[reconcile.Request] {
	q := newQueue(limiter, workqueue.Options[reconcile.Request]{
		Name: name, Order: workqueue.NewPriorityOrder[reconcile.Request](workqueue.PriorityOptions{}), MaxCauses: 1,
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.Store(q)
	for _, r := range l.waiting {
		q.Add(r)
	}
	l.waiting = nil
	return q
}

// Name is the controller's.
func (l *loop) Name() string { return l.name }

// NeedLeaderElection is the controller's.
func (l *loop) NeedLeaderElection() bool { return needsLeader(l.peer) }

// Run runs the controller. The stop ends its queue; what is in flight lives until the manager's deadline.
func (l *loop) Run(ctx context.Context) error {
	if l.warmed != nil {
		select {
		case <-l.warmed:
		case <-ctx.Done():
			return nil
		}
	}
	return l.peer.Start(ctx)
}

// Enqueue asks for a reconcile.
func (l *loop) Enqueue(r own.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	request := reconcile.Request{NamespacedName: r.NamespacedName}
	if q := l.queue.Load(); q != nil {
		q.Add(request)
		return
	}
	l.waiting = append(l.waiting, request)
}

// Reconcile calls the reconciler with a context that outlives the stop, and remembers how it went.
func (l *loop) Reconcile(ctx context.Context, r reconcile.Request) (result reconcile.Result, err error) {
	alive, release := workctx.From(ctx, 0)
	defer release()
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
		Key: r.String(), Err: err, Attempts: l.failing[r].Attempts + 1, GivenUp: errors.Is(err, reconcile.TerminalError(nil)),
	}
}

// Stats counts what the controller did.
func (l *loop) Stats() own.Stats {
	l.mu.Lock()
	s := own.Stats{Syncs: l.syncs, Errors: l.errs, Panics: l.panics, InFlight: len(l.running), Peak: l.peak}
	l.mu.Unlock()
	if q := l.queue.Load(); q != nil {
		queued := q.core.Stats()
		s.Adds, s.Retries, s.Queued = queued.Adds, queued.Retries, queued.Depth
		s.InFlight = max(s.InFlight, queued.Processing)
	}
	return s
}

// Work tells what there is to do.
func (l *loop) Work() own.Work {
	var w own.Work
	q := l.queue.Load()
	if q == nil {
		return w
	}
	stats := q.core.Stats()
	w.Started, w.Ready, w.InFlight = q.asked.Load(), stats.Depth, stats.Processing
	for _, d := range q.core.View(stats.Delayed).Delayed {
		delayed := own.Delayed{Key: fmt.Sprint(d.Key), In: max(d.Time, 0)}
		if len(d.Causes) > 0 {
			delayed.Why = d.Causes[len(d.Causes)-1].Event
		}
		w.Delayed = append(w.Delayed, delayed)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.failing {
		w.Failing = append(w.Failing, f)
	}
	return w
}

// InFlight names what is being worked on.
func (l *loop) InFlight() (keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.running {
		keys = append(keys, r.String())
	}
	return keys
}

// needsLeader says whether a runnable waits for the lease: it does unless it says otherwise.
func needsLeader(r manager.Runnable) bool {
	l, ok := r.(manager.LeaderElectionRunnable)
	return !ok || l.NeedLeaderElection()
}
