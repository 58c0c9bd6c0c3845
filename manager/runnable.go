package manager

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/reconcile"
)

// Runnable is what a [Manager] runs. Run blocks until ctx is done and everything it started has ended; a nil before that says
// that there is nothing more to do, an error or a panic stops the manager. See the package comment for what else a runnable may have.
type Runnable interface {
	Run(ctx context.Context) error
}

// Rebuilder is a [Runnable] that can be made anew when it has run: what a controller needs that shall work in more than one
// tenure of its process, for it runs only once. See LeaderElection.Survive.
type Rebuilder interface {
	Runnable
	// Rebuild returns one that has not run yet, of the same name. It is called when Run has returned.
	Rebuild() (Runnable, error)
}

// Rebuilt is the [Rebuilder] of the runnables that build makes: one at once, and one for every further run.
func Rebuilt(build func() (Runnable, error)) (Rebuilder, error) {
	if build == nil {
		return nil, errors.New("manager: Rebuilt: the function that builds the runnable is nil")
	}
	first, err := build()
	if err != nil {
		return nil, err
	}
	if misuse.IsNil(first) {
		return nil, errors.New("manager: Rebuilt: the function built no runnable, and returned no error")
	}
	return &rebuilt{Runnable: first, build: build}, nil
}

type rebuilt struct {
	Runnable
	build func() (Runnable, error)
}

// Rebuild implements [Rebuilder].
func (r *rebuilt) Rebuild() (Runnable, error) { return Rebuilt(r.build) }

func (r *rebuilt) unwrap() Runnable { return r.Runnable }

// recovered calls run for a runnable and makes an error of a panic: what one does wrong ends the manager in order, not the whole
// process at once, in which others may live. The stack, for which an error has no room, is logged.
func recovered(ctx context.Context, name string, run func(context.Context) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			panicked := &reconcile.PanicError{Value: value, Stack: debug.Stack()}
			klog.FromContext(ctx).Error(panicked, "Runnable panicked", "runnable", name, "stack", string(panicked.Stack))
			err = panicked
		}
	}()
	return run(ctx)
}

// ErrStopped is returned when something is added to a manager that is stopping or has stopped.
var ErrStopped = errors.New("the manager has stopped")

// leadership says whether a runnable waits for the lease.
type leadership int

const (
	withoutLeader leadership = iota
	withLeader
)

// entry is a runnable and what became of it. One that runs again is another entry.
type entry struct {
	runnable Runnable
	name     string
	needs    leadership
	started  bool // guarded by the group's lock
	// changing says that somebody removes the entry or runs it anew, which nobody else must do meanwhile. Guarded by the group's lock.
	changing bool
	done     chan struct{} // closed when Run has returned and err is set; capacity 0
	err      error
	// endIntake and cancelWork end the two contexts of this entry alone. They are set when it starts.
	endIntake, cancelWork context.CancelFunc
	// warm is the warm-up of one that waits for the lease; nil when it had none. Guarded by the group's lock until it starts.
	warm *warmup
}

func newEntry(r Runnable) *entry {
	e := &entry{runnable: r, needs: withLeader, done: make(chan struct{})}
	if n, ok := as[interface{ NeedLeaderElection() bool }](r); ok && !n.NeedLeaderElection() {
		e.needs = withoutLeader
	}
	if n, ok := as[interface{ Name() string }](r); ok {
		e.name = n.Name()
	} else {
		e.name = fmt.Sprintf("%T", r)
	}
	return e
}

// as finds out whether r, or what it is wrapped around, has the methods of T.
func as[T any](r Runnable) (T, bool) {
	for {
		if t, ok := r.(T); ok {
			return t, true
		}
		w, ok := r.(interface{ unwrap() Runnable })
		if !ok {
			var none T
			return none, false
		}
		r = w.unwrap()
	}
}

func (e *entry) isDone() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// inFlight names what the runnable is working on, if it can tell.
func (e *entry) inFlight() []string {
	if r, ok := as[interface{ InFlight() []string }](e.runnable); ok {
		return r.InFlight()
	}
	return nil
}

// stats are the counters of a controller.
func (e *entry) stats() (reconcile.Stats, bool) {
	if c, ok := as[interface{ Stats() reconcile.Stats }](e.runnable); ok {
		return c.Stats(), true
	}
	return reconcile.Stats{}, false
}
