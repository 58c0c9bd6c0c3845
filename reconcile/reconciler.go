package reconcile

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Request names the object to reconcile. It does not contain what happened to the object: a reconciler compares the
// current state with the desired state. [Causes] returns the reasons for the call.
type Request struct {
	types.NamespacedName
}

// RequestFor returns the [Request] that names obj.
func RequestFor(obj metav1.Object) Request {
	return Request{types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

// Result decides when a key runs again after a reconcile without an error.
type Result struct {
	// RequeueAfter runs the key again after this time, unless an event queues it earlier. Zero or less means no further
	// run.
	RequeueAfter time.Duration
	// Requeue, without RequeueAfter, runs the key again with backoff. It counts in Options.MaxRetries as errors do.
	Requeue bool
	// Priority is the priority of the further run. Nil keeps the priority that the key had.
	Priority *int
}

// IsZero reports whether r asks for nothing.
func (r *Result) IsZero() bool { return r == nil || *r == Result{} }

// Reconciler brings the actual state one step closer to what the object named by key asks for. It must be idempotent:
// it may be called again for the same key at any time, and after a crash it starts from the beginning.
//
// What the controller does with the result and the error:
//
//	error nil, Result zero         done; its backoff is forgotten
//	error nil, RequeueAfter > 0    again after that time; its backoff is forgotten
//	error nil, only Requeue        again with backoff
//	error from [Terminal]          reported, not retried; its backoff is forgotten
//	client.ErrStale                again soon, quietly; its backoff stays as it is
//	context.Canceled, at a stop    left to the next process
//	any other error                retried with backoff, up to Options.MaxRetries times; only Result.Priority counts
//	panic                          as an error with the panic's value and stack, a [PanicError]
//
// Concurrency: several workers call it at once, but never two for one key.
type Reconciler[K comparable] interface {
	Reconcile(ctx context.Context, key K) (Result, error)
}

// Func makes a function a [Reconciler].
type Func[K comparable] func(ctx context.Context, key K) (Result, error)

// Reconcile calls f.
func (f Func[K]) Reconcile(ctx context.Context, key K) (Result, error) { return f(ctx, key) }

// Terminal marks err as an error that a retry cannot resolve. The key runs again only when something adds it. The mark
// survives wrapping. Terminal(nil) is nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

// IsTerminal reports whether err, or any error it wraps, was marked by [Terminal].
func IsTerminal(err error) bool {
	var t *terminalError
	return errors.As(err, &t)
}

type terminalError struct{ error }

func (e *terminalError) Unwrap() error { return e.error }

// Is reports whether the target was marked by Terminal, too.
func (e *terminalError) Is(target error) bool { return IsTerminal(target) }
