// Package reconcile has the names of controller-runtime for package reconcile with requests that name an object.
//
// Source: controller-runtime v0.25.2 pkg/reconcile.
package reconcile

import (
	"context"
	"errors"
	"reflect"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/reconcile"
)

// Names for types of package reconcile.
type (
	Request                       = reconcile.Request
	Result                        = reconcile.Result
	Reconciler                    = reconcile.Reconciler[reconcile.Request]
	Func                          = reconcile.Func[reconcile.Request]
	TypedReconciler[K comparable] = reconcile.Reconciler[K]
	TypedFunc[K comparable]       = reconcile.Func[K]
)

// TerminalError is reconcile.Terminal, but also returns an error for nil: errors.Is(err, TerminalError(nil)) reports
// whether err is terminal.
func TerminalError(err error) error {
	if err == nil {
		err = errNil
	}
	return reconcile.Terminal(err)
}

var errNil = errors.New("nil terminal error")

// ObjectReconciler reconciles an object that was read for it.
type ObjectReconciler[T client.Object] interface {
	Reconcile(ctx context.Context, obj T) (Result, error)
}

// AsReconciler returns a reconciler that reads the object with c and calls r with it. It does nothing if there is no
// such object.
func AsReconciler[T client.Object](c client.Client, r ObjectReconciler[T]) Reconciler {
	return Func(func(ctx context.Context, request Request) (Result, error) {
		obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
		if err := c.Get(ctx, request.NamespacedName, obj); err != nil {
			return Result{}, client.IgnoreNotFound(err)
		}
		return r.Reconcile(ctx, obj)
	})
}
