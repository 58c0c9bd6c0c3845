package reflector

import (
	"cmp"
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/internal/trace"
)

// Reflector follows one resource: it lists it, watches it, and appends everything it learns to a
// [deltafifo.DeltaFIFO]. It keeps going until its context ends, whatever the server does.
//
// It is a state machine. Run calls step again and again. step does the work of the current state and returns the next
// state:
//
//	          ┌──────── the history is gone, or makes no sense ────────┐
//	          ▼                                                        │
//	listing or streaming ──── a complete list was appended ────▶ watching ─── closed in good order: again
//	          ▲                                                    │  ▲
//	          │                             the connection broke ──┤  ├── the history is the same
//	          │                                                    ▼  │
//	          └───────────── the history went back ──────────────verifying
//
// The table recoveries has the state that follows each failure; docs/informer-cases.md shows the table. A state that
// follows a failure may begin with a pause. Nothing stops the machine but its context. An interruption (see
// [connection.Interrupter]) ends a watch or a pause, and is always followed by a list of the newest state.
type Reflector[T any] struct {
	lw     listwatch.ListerWatcher[T]
	fifo   *deltafifo.DeltaFIFO[T]
	o      Options[T]
	status *connection.Status

	// position is the resource version of the last delta appended; the next watch begins there. Invariant: the log
	// has everything up to it. Objects that cannot be decoded count as in the log; an object that cannot be
	// transformed keeps the position where it is.
	position string
	// listed is true once a list was appended.
	listed bool
	// history is the number of the server's history that position belongs to.
	history int64
	// noStreaming is true if the server turned out not to stream lists.
	noStreaming bool
	// progress is true if, since the last list, the position moved or a watch lasted.
	progress bool
	// serverErrors counts the watches that ended in ServerError since the last one that made progress.
	serverErrors int

	delays *delays
	// trace is nil if tracing is off.
	trace *trace.Recorder
}

// Options configure a [Reflector]. The zero value works.
type Options[T any] struct {
	// Resource and Namespace appear in errors and logs, and in informer.Health.
	Resource, Namespace string
	// Scope is copied into every delta.
	Scope int
	// Transform is called once for every object, before anything else sees it, and returns what to keep. It may modify
	// the object in place.
	//
	// Errors: the list fails, or the watch falls back to a list, until Transform succeeds. A panic counts as an error,
	// and so does a nil object: use selectors to leave objects out.
	Transform func(T) (T, error)
	// PageSize is the number of objects in a page of a list; 0 means 500, negative means no limit.
	PageSize int64
	// StreamLists asks the server to send lists as the beginning of a watch. The server then need not hold the whole
	// list in memory, nor the client its encoding. Servers that cannot do this are asked for lists.
	StreamLists bool
	// Quiet is how long a streamed list may pause, before its first object or between two, until the reflector gives
	// it up; 0 means 10 s.
	Quiet time.Duration
	// ListTimeout is how long one page of a list may take; 0 means 5 min.
	ListTimeout time.Duration
	// WatchTimeout is how long the server is asked to keep a watch open. The reflector asks for a random time between
	// it and twice that. 0 means 5 min.
	WatchTimeout time.Duration
	// Grace is how long after its timeout a watch may stay open and silent before the reflector gives up the
	// connection; 0 means 30 s.
	Grace time.Duration
	// Backoff configures the delays after failures.
	Backoff Backoff
	// Cache is the cache that the log fills. nil means unknown.
	Cache Cache[T]
	// Status records the state of the connection. nil means a status of the reflector's own, with OnError.
	Status *connection.Status
	// OnError is called for every failed list and watch, by the reflector's goroutine, which waits for it. It may be
	// nil: Health and the log report failures in any case.
	OnError func(ctx context.Context, err error)
}

// Cache is what a reflector asks of the cache that its deltas go to. An indexer implements it.
type Cache[T any] interface {
	// Held returns the cached object if it is in exactly the state s. The reflector then skips decoding, or drops what
	// was decoded, and uses the cached object instead, so a relist costs little time and memory.
	Held(s objects.State) (T, bool)
	// Known reports whether the cache holds the object, in any state.
	Known(s objects.State) bool
}

// state is what a reflector does next, with the data for it.
type state struct {
	kind kind
	// pause is how long to wait first.
	pause time.Duration
	// list is how the next list differs from an ordinary one: any of newest, unpaged and rebuild. Invariant: it is 0 in
	// verifying and watching.
	list effect
	// because is the failure that made the next list necessary. The first list has none.
	because connection.Failure
}

// kind is the name of a state.
type kind int

const (
	// listing fetches a complete list, page by page, appends it as one Replace, and goes on to watching.
	//
	// On failure: listing again, after a pause or with other parameters.
	listing kind = iota
	// streaming opens a watch that begins with the existing objects (a streaming list). When the server marks their
	// end, it appends them as one Replace and goes on as watching does.
	//
	// On failure before that mark, what was received is dropped: listing if the server may be unable to stream, else
	// streaming again. On failure after it: as watching.
	streaming
	// verifying checks after a broken connection that the server still has the history of position. It asks for one
	// object of the newest list, and compares the list's version with position: a server that was restored from a
	// backup is behind it, and would keep a watch from there open for hours without an event. Then it asks the server
	// for its identity, once for all informers that lost it; see [connection.Server]. If the history and the identity
	// are the same, it goes on to watching.
	//
	// On failure: relisting if the history went back; watching if the server forbids lists; else verifying again.
	verifying
	// watching opens a watch at position and appends its events until it ends.
	//
	// On failure: watching again if it ended in good order, or the server is merely overloaded; verifying if the
	// connection broke; relisting if the history is gone or makes no sense.
	watching
	// relisting is streaming if Options.StreamLists is set and the server supports it, else listing.
	relisting
)

func (k kind) String() string { return [...]string{"list", "stream", "verify", "watch", "relist"}[k] }

// maxServerErrors is how many watches in a row a server may fail before the reflector lists instead.
const maxServerErrors = 3

// shortWatch is the shortest time that a watch without events may last and still count as timed out, not failed.
const shortWatch = time.Second

// New returns a reflector that appends to fifo.
func New[T any](lw listwatch.ListerWatcher[T], fifo *deltafifo.DeltaFIFO[T], o Options[T]) *Reflector[T] {
	if misuse.IsNil(lw) || fifo == nil {
		panic("reflector: New: the ListerWatcher or the DeltaFIFO is nil: " +
			"there is nothing to follow, or nowhere to put it")
	}
	o.PageSize = cmp.Or(o.PageSize, 500)
	o.WatchTimeout = cmp.Or(max(o.WatchTimeout, 0), 5*time.Minute)
	o.Grace = cmp.Or(max(o.Grace, 0), 30*time.Second)
	o.Quiet = cmp.Or(max(o.Quiet, 0), 10*time.Second)
	o.ListTimeout = cmp.Or(max(o.ListTimeout, 0), 5*time.Minute)
	if o.Status == nil {
		o.Status = connection.NewStatus(
			connection.StatusOptions{Resource: o.Resource, Namespace: o.Namespace, OnError: o.OnError},
		)
	}
	return &Reflector[T]{lw: lw, fifo: fifo, o: o, delays: newDelays(o.Backoff), status: o.Status}
}

// Run follows the resource until ctx is done. It then returns nil.
func (r *Reflector[T]) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("resource", r.o.Resource, "namespace", r.o.Namespace))
	defer r.status.Follow()()
	r.trace = trace.From(ctx)
	for s := (state{kind: relisting}); ctx.Err() == nil; {
		if r.status.TakeInterrupt() {
			s = state{kind: relisting, list: s.list | newest | rebuild, because: connection.History}
		}
		s = r.step(ctx, s)
	}
	return nil
}

// step does the work of s, and returns the next state.
func (r *Reflector[T]) step(ctx context.Context, s state) state {
	if s.pause > 0 {
		r.wait(ctx, s.pause)
		s.pause = 0
		return s
	}
	if s.kind == relisting {
		s.kind = listing
		if r.o.StreamLists && !r.noStreaming {
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
	case <-r.status.Interrupted:
		r.status.Interrupt() // Put it back: Run takes it.
	case <-ctx.Done():
	}
}
