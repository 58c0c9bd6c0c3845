package ownwrites

import (
	"context"

	"github.com/flyball-dev/flyball/internal/cachecheck"
)

// OwnerKey is the context key of the owner, any comparable value, of the writes that are sent with the context.
type OwnerKey struct{}

// OwnerFrom returns the owner that ctx carries; nil if none.
func OwnerFrom(ctx context.Context) any { return ctx.Value(OwnerKey{}) }

// WakerKey is the context key of the [Waker] of reads and writes with the context. Reads outside of a reconcile have
// none, and nobody wakes their callers.
type WakerKey struct{}

// WakerFrom returns the waker that ctx carries; nil if none.
func WakerFrom(ctx context.Context) Waker {
	w, _ := ctx.Value(WakerKey{}).(Waker)
	return w
}

// ContradictionKey is the context key of a func(*[cachecheck.ContradictionError]). It is called when the server refuses
// a request with that context because it does not have an object that a cache holds.
type ContradictionKey struct{}

// Contradicted calls the function under [ContradictionKey], if ctx has one.
func Contradicted(ctx context.Context, err *cachecheck.ContradictionError) {
	if tell, ok := ctx.Value(ContradictionKey{}).(func(*cachecheck.ContradictionError)); ok {
		tell(err)
	}
}
