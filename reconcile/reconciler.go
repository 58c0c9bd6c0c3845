package reconcile

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Request names the object to reconcile. It carries nothing of what happened to it: a reconciler compares
// what is with what should be, and why it was called is told by [Causes].
type Request struct {
	types.NamespacedName
}

// RequestFor is the [Request] that names obj.
func RequestFor(obj metav1.Object) Request {
	return Request{types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

// Result says what becomes of a key whose reconcile returned no error.
type Result struct {
	// RequeueAfter runs the key again after this time, unless it is added before. Zero or less: not at all.
	RequeueAfter time.Duration
	// Requeue, without RequeueAfter, runs the key again with backoff. It counts in Options.MaxRetries as errors do.
	Requeue bool
	// Priority is the priority of that further run. Nil keeps the one the key had.
	Priority *int
}

// priority is that of a further run of a key that ran with had.
func (r Result) priority(had int) *int {
	if r.Priority != nil || had == 0 {
		return r.Priority
	}
	return &had
}

// Reconciler brings the world one step closer to what the object named by key asks for. It must be
// idempotent: it is called again for the same key at any time, and after a crash from the start.
//
// What the controller does with the answer:
//
//	error nil, Result zero         the key is done; its backoff is forgotten
//	error nil, RequeueAfter > 0    again after that time; its backoff is forgotten
//	error nil, only Requeue        again with backoff
//	error from [Terminal]          reported, not retried; its backoff is forgotten
//	client.ErrStale                again soon, quietly; its backoff stays as it is
//	any other error                retried with backoff; of the Result, only Priority counts
//	panic                          as an error that holds the panic's value and stack
//
// Concurrency: called by several workers at once, but never twice at once for one key.
type Reconciler[K comparable] interface {
	Reconcile(ctx context.Context, key K) (Result, error)
}

// Func is a function that is a [Reconciler].
type Func[K comparable] func(ctx context.Context, key K) (Result, error)

// Reconcile calls f.
func (f Func[K]) Reconcile(ctx context.Context, key K) (Result, error) { return f(ctx, key) }

// Terminal marks err as one that trying again cannot mend: the key is not retried until something adds it
// anew. The mark is found through any wrapping. Terminal(nil) is nil.
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
