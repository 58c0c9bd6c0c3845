package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/objects"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/internal/trace"
)

// Reflector follows one resource: it lists it, watches it, and appends what it learns to a [deltafifo.DeltaFIFO], for
// as long as its context lives and whatever the server does.
//
// It is a state machine. Run calls step, and step does what the state says and returns the next:
//
//	          ┌──────── the history is gone, or makes no sense ────────┐
//	          ▼                                                        │
//	listing or streaming ──── a complete list was appended ────▶ watching ─── closed in good order: again
//	          ▲                                                    │  ▲
//	          │                             the connection broke ──┤  ├── the history is the same
//	          │                                                    ▼  │
//	          └───────────── the history went back ──────────────verifying
//
// What follows a failure is a table, recoveries; docs/informer-cases.md shows it. A state that follows a failure may
// begin with a pause. Nothing stops the machine but its context. An interruption (see [connection.Interrupter]) ends a
// watch or a pause; whatever the state, what comes next is then a list that asks for the newest.
type Reflector[T any] struct {
	lw     listwatch.ListerWatcher[T]
	fifo   *deltafifo.DeltaFIFO[T]
	o      Options[T]
	status *connection.Status

	// position is the resource version of the last delta appended: where the next watch begins. Invariant:
	// everything up to it is in the log, if only as an object that could not be decoded. One that could not be
	// transformed keeps it where it is.
	position string
	// complete reports whether a list has been appended.
	complete bool
	// seen is the number of the server's history that the position is in.
	seen int64
	// unstreamed reports whether the server was found not to stream lists.
	unstreamed bool
	// progress reports whether the position moved, or a watch lasted, since the last list.
	progress bool
	// serverErrors counts the watches that ended in ServerError since one moved the position, or lasted.
	serverErrors int

	delays *delays
	// trace is nil if nobody wants to know.
	trace *trace.Recorder
}

// Options configure a [Reflector]. The zero value works.
type Options[T any] struct {
	// Resource and Namespace stand in errors and logs, and in informer.Health.
	Resource, Namespace string
	// Scope is put into every delta.
	Scope int
	// Transform sees every object once, before anything else does, and returns what to keep. It may change it in
	// place.
	//
	// Errors: the list fails, or the watch falls back to a list, until it succeeds. A panic
	// counts as an error, and so does nil for an object: to leave objects out is the business of selectors.
	Transform func(T) (T, error)
	// PageSize is the number of objects to list at once; 0 means 500, negative all.
	PageSize int64
	// StreamLists asks the server to send lists as the beginning of a watch: it then need not hold the whole list
	// in memory, nor the client its encoding. Servers that cannot are asked for lists.
	StreamLists bool
	// Quiet is how long a streamed list may pause between two objects, or before the first, before it is taken to
	// never end; 0 means 10 s.
	Quiet time.Duration
	// ListTimeout is how long one page of a list may take; 0 means 5 min.
	ListTimeout time.Duration
	// WatchTimeout is how long the server is asked to keep a watch; the reflector asks for a random time between it
	// and twice that. 0 means 5 min.
	WatchTimeout time.Duration
	// Grace is how much longer than asked for a watch may be silent before the connection is given up; 0 means 30 s.
	Grace time.Duration
	// Backoff is how long to wait after failures.
	Backoff Backoff
	// Cache is the cache that the log fills; nil is one that is not known.
	Cache Cache[T]
	// Status is where the reflector notes how it goes; nil is a status of its own, with OnError.
	Status *connection.Status
	// OnError is told of every failed list and watch, by the reflector's goroutine, which waits. nil is ignored;
	// Health and the log tell in any case.
	OnError func(ctx context.Context, err error)
}

// Cache is what a reflector may ask of the cache that its deltas go to. The indexer is one.
type Cache[T any] interface {
	// Held returns the cached object if it is in exactly that state. What the cache holds is not decoded, or
	// dropped at once, in favour of the cached object: listing again then costs little time and memory.
	Held(s objects.State) (T, bool)
	// Known reports whether the cache holds the object, in any state.
	Known(s objects.State) bool
}

// state is what a reflector does next, with the data that this takes.
type state struct {
	kind kind
	// pause is how long to wait before.
	pause time.Duration
	// asks has those of newest, unpaged and rebuild that hold for the next list, and because is what it is for, if
	// it is not the first. Invariant: asks is empty in verifying and watching.
	asks    effect
	because connection.Failure
}

// kind tells states apart.
type kind int

const (
	// listing fetches a complete list, page by page, and appends it as one Replace.
	listing kind = iota
	// streaming opens a watch that begins with the objects there are (a streaming list), appends these as one
	// Replace when the server says that was all, and goes on as watching does. What came before a failure is
	// forgotten.
	streaming
	// verifying asks for one object of the newest list, and compares the list's version with the position: a server
	// that was restored from a backup has not got so far, and would keep a watch from there open for hours without
	// an event.
	//
	// Then the server is asked whether it is another one, once for all informers that lost it: see
	// [connection.Server].
	verifying
	// watching opens a watch at the position and appends its events until it ends.
	watching
	// relisting is streaming if Options.StreamLists is set and the server does it, else listing.
	relisting
)

func (k kind) String() string { return [...]string{"list", "stream", "verify", "watch", "relist"}[k] }

// maxServerErrors is how many watches in a row a server may fail before a list is tried.
const maxServerErrors = 3

// shortWatch is the time within which a watch without events is taken for a failure, not for a timeout.
const shortWatch = time.Second

// New returns a reflector that appends to fifo.
func New[T any](lw listwatch.ListerWatcher[T], fifo *deltafifo.DeltaFIFO[T], o Options[T]) *Reflector[T] {
	if misuse.IsNil(lw) || fifo == nil {
		panic("reflector: New: the ListerWatcher or the DeltaFIFO is nil: " +
			"there is nothing to follow, or nowhere to put it")
	}
	if o.PageSize == 0 {
		o.PageSize = 500
	}
	if o.WatchTimeout <= 0 {
		o.WatchTimeout = 5 * time.Minute
	}
	if o.Grace <= 0 {
		o.Grace = 30 * time.Second
	}
	if o.Quiet <= 0 {
		o.Quiet = 10 * time.Second
	}
	if o.ListTimeout <= 0 {
		o.ListTimeout = 5 * time.Minute
	}
	if o.Status == nil {
		o.Status = connection.NewStatus(
			connection.StatusOptions{Resource: o.Resource, Namespace: o.Namespace, OnError: o.OnError},
		)
	}
	return &Reflector[T]{lw: lw, fifo: fifo, o: o, delays: newDelays(o.Backoff), status: o.Status}
}

// Run follows the resource until ctx is done, and returns nil then.
func (r *Reflector[T]) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("resource", r.o.Resource, "namespace", r.o.Namespace))
	defer r.status.Follow()()
	r.trace = trace.From(ctx)
	for s := (state{kind: relisting}); ctx.Err() == nil; {
		s = r.step(ctx, r.turn(s))
	}
	return nil
}

// turn returns s, or the state that fetches everything when the machine was interrupted.
func (r *Reflector[T]) turn(s state) state {
	if !r.status.Take() {
		return s
	}
	return state{kind: relisting, asks: s.asks | newest | rebuild, because: connection.History}
}

// step does what s says, and returns what comes next.
func (r *Reflector[T]) step(ctx context.Context, s state) state {
	if s.pause > 0 {
		r.wait(ctx, s.pause)
		s.pause = 0
		return s
	}
	if s.kind == relisting {
		s.kind = listing
		if r.o.StreamLists && !r.unstreamed {
			s.kind = streaming
		}
	}
	switch s.kind {
	case listing:
		return r.list(ctx, s)
	case streaming:
		return r.stream(ctx, s)
	case verifying:
		return r.verify(ctx, s)
	default:
		return r.watch(ctx)
	}
}

func (r *Reflector[T]) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.status.Woken:
		r.status.Interrupt() // For turn.
	case <-ctx.Done():
	}
}

// listed returns what to keep of an object of a list.
func (r *Reflector[T]) listed(asks effect, obj T) (T, error) {
	if objects.Missing(obj) {
		return obj, connection.ErrNil
	}
	if r.position != "" { // Before the first list the cache is empty.
		if held, found := r.held(asks, objects.StateOf(obj)); found {
			return held, nil
		}
	}
	return r.transform(obj)
}

// held returns what the cache holds in that state. After history went back the newest list is asked for. A version in
// it may say nothing: the server may have given it to another state before.
func (r *Reflector[T]) held(asks effect, s objects.State) (obj T, found bool) {
	if r.o.Cache == nil || asks.has(newest) {
		return obj, false
	}
	return r.o.Cache.Held(s)
}

// transform calls Options.Transform.
func (r *Reflector[T]) transform(obj T) (kept T, err error) {
	if r.o.Transform == nil {
		return obj, nil
	}
	name := objects.Describe(obj)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		} else if err == nil && objects.Missing(kept) {
			err = errors.New("it returned nil")
		}
		if err != nil {
			err = &connection.TransformError{Object: name, Err: err}
		}
	}()
	return r.o.Transform(obj)
}
