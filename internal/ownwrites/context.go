package ownwrites

import (
	"context"

	"github.com/flyball-dev/flyball/internal/cachecheck"
)

// OwnerKey is the key under which a context has the owner, any comparable value, of what is written with it.
type OwnerKey struct{}

// OwnerFrom returns the owner that ctx carries; nil if none.
func OwnerFrom(ctx context.Context) any { return ctx.Value(OwnerKey{}) }

// WakerKey is the key under which a context has the [Waker] of what is written and read with it. A read without one,
// outside of any reconcile, cannot be told.
type WakerKey struct{}

// WakerFrom returns the waker that ctx carries; nil if none.
func WakerFrom(ctx context.Context) Waker {
	w, _ := ctx.Value(WakerKey{}).(Waker)
	return w
}

// ContradictionKey is the key under which a context has a func(*[cachecheck.ContradictionError]). It is called when the
// server refuses a request of that context because it does not have an object that a cache holds.
type ContradictionKey struct{}

// Contradicted tells whoever is to be told of what is sent with ctx.
func Contradicted(ctx context.Context, err *cachecheck.ContradictionError) {
	if tell, ok := ctx.Value(ContradictionKey{}).(func(*cachecheck.ContradictionError)); ok {
		tell(err)
	}
}
