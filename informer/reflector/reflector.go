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
)

// Reflector follows one resource: it lists it, watches it, and appends what it learns to a [DeltaFIFO], for as long
// as its context lives and whatever the server does.
//
// It is a state machine. Run calls step, and step does what the state says and returns the next:
//
//	          ┌──── the history is gone, or the watch makes no sense ─────┐
//	          ▼                                                           │
//	┌──▶ stateList ───── a complete list was appended ─────▶ stateWatch ──┤
//	│      │  ▲                                               │  ▲  │     │
//	│      └──┘ asks differently: the newest, unpaged         │  └──┘ the server closed it: resume
//	│                                                         │
//	└────────────────────── statePause ◀──── any failure ─────┘
//
// Each state's comment says where failure goes. Nothing stops the machine but its context. An interruption (see
// history) ends a watch or a pause, and leads from every state to stateList, which asks for the newest then.
type Reflector[T any] struct {
	lw     listwatch.ListerWatcher[T]
	fifo   *deltafifo.DeltaFIFO[T]
	o      Options[T]
	status *connection.Status

	// position is the resource version of the last delta appended: where the next watch begins. Invariant:
	// everything up to it is in the log, if only as an object that could not be decoded. One that could not be
	// transformed keeps it where it is.
	position string
	// complete says that a list has been appended.
	complete bool
	// newest makes the next list ask for the newest state, because one that was allowed to be older was refused.
	newest bool
	// unstreamed makes all lists be lists, because the server does not stream them.
	unstreamed bool
	// unpaged makes the next list ask for everything at once, because a continue token expired.
	unpaged bool
	// progress says that something was learnt since the last list. A watch that expires without any gets a pause
	// before the next list: else a server that compacts too fast would be listed in a loop.
	progress bool
	// because is what the next list is for, if it is not the first.
	because connection.Failure
	// The position is in the server's history of number seen; the list under way began in listingIn.
	seen, listingIn int64
	// rebuild makes the next list one that is believed over the cache whatever its versions are.
	rebuild bool
	// serverErrors counts watches in a row that ended in ServerError.
	serverErrors int

	delays *delays
	// pause and then are the arguments of statePause.
	pause time.Duration
	then  state
}

// ReflectorOptions configure a [Reflector]. The zero value works.
type Options[T any] struct {
	// Resource and Namespace stand in errors and logs; see [Health].
	Resource, Namespace string
	// Scope is put into every delta.
	Scope int
	// Transform sees every object once, before anything else does, and returns what to keep. It may change it in
	// place.
	//
	// Errors: a [TransformError]: the list fails, or the watch falls back to a list, until it succeeds. A panic
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

// state is what a reflector does next.
type state int

const (
	// stateList fetches a complete list, page by page, and appends it as one Replace.
	//
	// Failure: an expired token or version: stateList again, at once, asking for the newest or everything. Anything
	// else: statePause, then stateList.
	stateList state = iota
	// stateStream opens a watch that begins with the objects there are (a streaming list), appends these as one
	// Replace when the server says that was all, and goes on as stateWatch does. Used instead of stateList when
	// ReflectorOptions.StreamLists is set.
	//
	// Failure: the server cannot, or does not end the objects, or the stream ends before: stateList, at once.
	// Expired version: stateStream, asking for the newest. Anything else: statePause, then stateStream. What came
	// before the failure is forgotten. After the objects: as stateWatch.
	stateStream
	// stateVerify asks for one object of the newest list, and compares the list's version with the position: a
	// server that was restored from a backup has not got so far, and would keep a watch from there open for hours
	// without an event.
	//
	// Then the server is asked whether it is another one, once for all informers that lost it: see history.
	//
	// Failure: the history went back: stateList (or stateStream), asking for the newest. Refused, or malformed:
	// statePause, then stateWatch: without being able to ask, better that than nothing. Anything else: statePause,
	// then stateVerify.
	stateVerify
	// stateWatch opens a watch at the position and appends its events until it ends.
	//
	// Failure: expired or malformed: stateList (through statePause unless there was progress). Refused, or server
	// errors in a row: statePause, then stateList: when watching is impossible, listing now and then is better than
	// nothing. Server overloaded: statePause, then stateWatch: the position is still good, and a list is what such
	// a server needs least. Connection lost, or an event or bookmark from the past: statePause, then stateVerify:
	// it may be another server now. A server error that a gateway may have sent in its place: the same, unless
	// there are too many in a row. Closed in good order, but early: stateVerify at once, for the same reason. An
	// unknown object from the past: statePause, then stateList.
	stateWatch
	// statePause waits.
	//
	// Failure: none.
	statePause
)

// maxServerErrors is how many watches in a row a server may fail before a list is tried.
const maxServerErrors = 3

// shortWatch is the time within which a watch without events is taken for a failure, not for a timeout.
const shortWatch = time.Second

// New returns a reflector that appends to fifo.
func New[T any](lw listwatch.ListerWatcher[T], fifo *deltafifo.DeltaFIFO[T], o Options[T]) *Reflector[T] {
	if misuse.IsNil(lw) || fifo == nil {
		panic(
			"informer: NewReflector: the ListerWatcher or the DeltaFIFO is nil: there is nothing to follow, or " +
				"nowhere " +
				"to put it",
		)
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
	for s := r.relist(); ctx.Err() == nil; {
		s = r.step(ctx, r.turn(s))
	}
	return nil
}

// turn returns s, or the state that fetches everything when the machine was interrupted.
func (r *Reflector[T]) turn(s state) state {
	if !r.status.Take() {
		return s
	}
	r.newest, r.rebuild = true, true
	return r.relistFor(connection.History)
}

// step does what s says, and returns what comes next.
func (r *Reflector[T]) step(ctx context.Context, s state) state {
	switch s {
	case stateList:
		return r.list(ctx)
	case stateStream:
		return r.stream(ctx)
	case stateVerify:
		return r.verify(ctx)
	case stateWatch:
		return r.watch(ctx)
	default:
		r.wait(ctx)
		return r.then
	}
}

// relist is the state that fetches everything.
func (r *Reflector[T]) relist() state {
	if r.o.StreamLists && !r.unstreamed {
		return stateStream
	}
	return stateList
}

// pauseThen makes the machine wait for d, or as long as the failures so far call for if that is longer, before then.
func (r *Reflector[T]) pauseThen(d time.Duration, then state) state {
	r.pause, r.then = max(d, r.delays.take(time.Now())), then
	return statePause
}

func (r *Reflector[T]) wait(ctx context.Context) {
	timer := time.NewTimer(r.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.status.Woken:
		r.status.Interrupt() // For turn.
	case <-ctx.Done():
	}
}

// listed returns what to keep of an object of a list.
func (r *Reflector[T]) listed(obj T) (T, error) {
	if objects.Missing(obj) {
		return obj, connection.ErrNil
	}
	if r.position != "" { // Before the first list the cache is empty.
		if held, found := r.held(objects.StateOf(obj)); found {
			return held, nil
		}
	}
	return r.transform(obj)
}

// held returns what the cache holds in that state. After history went back the newest list is asked for. Of that a
// version may say nothing: it may have been given twice.
func (r *Reflector[T]) held(s objects.State) (obj T, found bool) {
	if r.o.Cache == nil || r.newest {
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
