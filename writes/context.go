package writes

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// contextKey is the type of the context keys of this package.
type contextKey int

const (
	// OwnerKey is the context key of the owner of the writes that are sent with the context: any comparable value.
	OwnerKey contextKey = iota
	// WakerKey is the context key of the [Waker] of reads and writes with the context.
	WakerKey
	// ContradictionKey is the context key of a func(*ContradictionError). It is called when the server refuses a
	// request with that context because it does not have an object that a cache holds.
	ContradictionKey

	intentKey
	awaitedKey
)

// OwnerFrom returns the owner that ctx carries; nil if none.
func OwnerFrom(ctx context.Context) any { return ctx.Value(OwnerKey) }

// Waker runs the reader or writer of a state again if no cache ever shows the state. Wakers are compared by ==: those
// that wake the same reader must be equal.
type Waker interface {
	// Wake is called by the goroutine that applies batches to a cache. It must not block.
	Wake(resource schema.GroupResource, key types.NamespacedName)
}

// wakerFrom returns the waker that ctx carries; nil if none. Reads outside of a reconcile have none.
func wakerFrom(ctx context.Context) Waker {
	w, _ := ctx.Value(WakerKey).(Waker)
	return w
}
